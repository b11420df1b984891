package main

import (
	"flag"
	"io"
	"time"

	"go.uber.org/zap/zapcore"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// flags reads the words after the subcommand into the flags of rules 6 and 8, and two switches of ours. What a word of zap's means
// is known by what it does.
func flags(words []string) (any, error) {
	set := flag.NewFlagSet("", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	options := zap.Options{
		Level:       zapcore.DebugLevel,
		TimeEncoder: zapcore.RFC3339TimeEncoder,
		// Our default is spelt out where Go's depends on --zap-devel.
		StacktraceLevel: zapcore.ErrorLevel,
	}
	options.BindFlags(set)
	set.String("config-file", "", "")
	set.String("kubeconfig", "", "")
	set.String("metrics-bind-addr", ":9643", "")
	set.String("health-bind-addr", ":9644", "")
	set.String("pprof-bind-addr", ":8081", "")
	set.String("leader-election-namespace", "garden", "")
	set.Int("concurrent-reconciles", 1, "")
	set.Int("kube-api-burst", 10, "")
	set.Float64("kube-api-qps", 5, "")
	set.Bool("enable-leader-election", false, "")
	set.Duration("leader-elect-lease-duration", 15*time.Second, "")
	set.Duration("leader-elect-renew-deadline", 10*time.Second, "")
	set.Duration("leader-elect-retry-period", 2*time.Second, "")
	set.Bool("dry-run", false, "")
	set.Bool("metrics-per-shoot", false, "")
	if err := set.Parse(words); err != nil {
		return nil, err
	}
	read := map[string]any{}
	set.VisitAll(func(flag *flag.Flag) { read[flag.Name] = flag.Value.String() })
	read["zap-log-level"] = zapcore.LevelOf(options.Level)
	read["zap-stacktrace-level"] = zapcore.LevelOf(options.StacktraceLevel)
	read["zap-time-encoding"] = written(options.TimeEncoder)
	if options.NewEncoder != nil {
		line, err := options.NewEncoder().EncodeEntry(zapcore.Entry{Message: "m"}, nil)
		if err != nil {
			return nil, err
		}
		read["zap-encoder"] = line.String()
	}
	return read, nil
}

// written is a time in this encoding.
func written(encode zapcore.TimeEncoder) any {
	written := zapcore.NewMapObjectEncoder()
	_ = written.AddArray("time", zapcore.ArrayMarshalerFunc(func(to zapcore.ArrayEncoder) error {
		encode(time.Unix(1_700_000_000, 123_456_789).UTC(), to)
		return nil
	}))
	return written.Fields["time"]
}
