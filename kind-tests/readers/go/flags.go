package main

import (
	"flag"
	"io"
	"math"
	"strconv"
	"time"

	"go.uber.org/zap/zapcore"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// flags reads the words after the subcommand into the flags of rules 6 and 8.
func flags(words []string) (any, error) {
	set := flag.NewFlagSet("", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	options := zap.Options{Level: zapcore.DebugLevel, TimeEncoder: zapcore.RFC3339TimeEncoder}
	options.BindFlags(set)
	text := map[string]*string{
		"config-file":               set.String("config-file", "", ""),
		"kubeconfig":                set.String("kubeconfig", "", ""),
		"metrics-bind-addr":         set.String("metrics-bind-addr", ":9643", ""),
		"health-bind-addr":          set.String("health-bind-addr", ":9644", ""),
		"pprof-bind-addr":           set.String("pprof-bind-addr", ":8081", ""),
		"leader-election-namespace": set.String("leader-election-namespace", "garden", ""),
	}
	numbers := map[string]*int{
		"concurrent-reconciles": set.Int("concurrent-reconciles", 1, ""),
		"kube-api-burst":        set.Int("kube-api-burst", 10, ""),
	}
	spans := map[string]*time.Duration{
		"leader-elect-lease-duration": set.Duration("leader-elect-lease-duration", 15*time.Second, ""),
		"leader-elect-renew-deadline": set.Duration("leader-elect-renew-deadline", 10*time.Second, ""),
		"leader-elect-retry-period":   set.Duration("leader-elect-retry-period", 2*time.Second, ""),
	}
	qps := set.Float64("kube-api-qps", 5, "")
	election := set.Bool("enable-leader-election", false, "")
	if err := set.Parse(words); err != nil {
		return nil, err
	}
	return map[string]any{
		"text": text, "numbers": numbers, "spans": spans,
		"kube-api-qps":           strconv.FormatUint(math.Float64bits(*qps), 16),
		"enable-leader-election": *election,
		"zap-devel":              options.Development,
		"zap-level":              least(options.Level),
		"zap-stacktrace-level":   least(options.StacktraceLevel),
		"zap-encoder":            encoder(options.NewEncoder),
		"zap-time-encoding":      encoded(options.TimeEncoder),
	}, nil
}

// least is the least severe level that is let through; nothing when no level was given.
func least(enabler zapcore.LevelEnabler) any {
	if enabler == nil {
		return nil
	}
	for level := -128; level < 128; level++ {
		if enabler.Enabled(zapcore.Level(level)) {
			return level
		}
	}
	return nil
}

// encoder names the encoder by what it writes.
func encoder(of zap.NewEncoderFunc) any {
	if of == nil {
		return nil
	}
	line, err := of().EncodeEntry(zapcore.Entry{Message: "m"}, nil)
	switch {
	case err != nil:
		return err.Error()
	case line.String()[0] == '{':
		return "json"
	default:
		return "console"
	}
}

// encoded is a time as the encoder writes it.
func encoded(of zapcore.TimeEncoder) any {
	var written array
	of(time.Unix(1_700_000_000, 123_456_789).UTC(), &written)
	return written.value
}

// array takes the one value that a time encoder writes.
type array struct {
	zapcore.PrimitiveArrayEncoder
	value any
}

func (array *array) AppendString(text string) { array.value = text }
func (array *array) AppendFloat64(value float64) {
	array.value = strconv.FormatFloat(value, 'f', 6, 64)
}
func (array *array) AppendInt64(value int64) { array.value = strconv.FormatInt(value, 10) }
