// machine-controller is the part of machine-controller-manager that every provider builds for itself, for a provider whose VMs are
// files: the test bed lets a kubelet run for each. All else in it is machine-controller-manager's own.
package main

import (
	"fmt"
	"os"

	_ "github.com/gardener/machine-controller-manager/pkg/util/client/metrics/prometheus"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/app"
	"github.com/gardener/machine-controller-manager/pkg/util/provider/app/options"
	_ "github.com/gardener/machine-controller-manager/pkg/util/reflector/prometheus"
	_ "github.com/gardener/machine-controller-manager/pkg/util/workqueue/prometheus"
	"github.com/spf13/pflag"
	"k8s.io/component-base/cli/flag"
	"k8s.io/component-base/logs"
)

func main() {
	server := options.NewMCServer()
	server.AddFlags(pflag.CommandLine)
	vms := pflag.String("vms", "", "the folder in which each file is a VM")
	flag.InitFlags()
	logs.InitLogs()
	defer logs.FlushLogs()

	if err := app.Run(server, cloud{folder: *vms}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
