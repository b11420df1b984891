package main

import (
	"strconv"
	"time"
)

// duration gives what Go's ParseDuration reads, in nanoseconds, and how Go writes it.
func duration(text string) (any, error) {
	read, err := time.ParseDuration(text)
	return map[string]any{"nanos": read.Nanoseconds(), "written": read.String()}, err
}

// integer gives what Atoi reads: the memory of replicas is in its syntax.
func integer(text string) (any, error) {
	return strconv.Atoi(text)
}

// boolean gives what ParseBool reads: ignore-scaling is one of its words.
func boolean(text string) (any, error) {
	return strconv.ParseBool(text)
}
