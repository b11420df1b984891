// gardenlet does what Gardener's gardenlet does about the dependency watchdog, with Gardener's own code: it renders what is
// deployed, and it checks what the care controller checks.
//
//	gardenlet seed                                        prints the objects of both agents in a seed
//	gardenlet shoot NAMESPACE SERVER CA-FILE              prints the prober's Secret on the seed, and its access to the shoot
//	gardenlet check SEED-KUBECONFIG SHOOT-KUBECONFIG NAMESPACE    prints what is wrong with a shoot, as JSON
package main

import (
	"context"
	"fmt"
	"os"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gardenlet:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 1 && args[0] == "seed":
		return printSeed(ctx, os.Stdout)
	case len(args) == 4 && args[0] == "shoot":
		authority, err := os.ReadFile(args[3])
		if err != nil {
			return err
		}
		return printShoot(ctx, os.Stdout, args[1], args[2], authority)
	case len(args) == 4 && args[0] == "check":
		return check(ctx, os.Stdout, args[1], args[2], args[3])
	default:
		return fmt.Errorf("seed | shoot NAMESPACE SERVER CA-FILE | check SEED-KUBECONFIG SHOOT-KUBECONFIG NAMESPACE")
	}
}
