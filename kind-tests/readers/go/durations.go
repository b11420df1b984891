package main

import "time"

// duration gives what Go's ParseDuration reads, in nanoseconds, and how Go writes it.
func duration(text string) (any, error) {
	read, err := time.ParseDuration(text)
	return map[string]any{"nanos": read.Nanoseconds(), "written": read.String()}, err
}
