// client-go-election is a candidate for leadership that leaves everything to client-go: what replicas in Rust must get along
// with. It prints one line when it starts to lead and one when it stops.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "where the API server is")
	namespace := flag.String("namespace", "garden", "namespace of the Lease")
	name := flag.String("name", "", "name of the Lease")
	identity := flag.String("identity", "", "who this candidate is")
	leaseDuration := flag.Duration("lease-duration", 15*time.Second, "others wait for so long")
	renewDeadline := flag.Duration("renew-deadline", 10*time.Second, "the leader tries for so long")
	retryPeriod := flag.Duration("retry-period", 2*time.Second, "between two tries")
	flag.Parse()

	// A first signal ends the candidacy, a second one the process.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	context.AfterFunc(ctx, stop)

	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	check(err)
	client, err := kubernetes.NewForConfig(config)
	check(err)

	lease := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: *namespace, Name: *name},
		Client:     client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: *identity},
	}
	work := make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:            lock{Interface: lease, work: work},
		LeaseDuration:   *leaseDuration,
		RenewDeadline:   *renewDeadline,
		RetryPeriod:     *retryPeriod,
		ReleaseOnCancel: true,
		Name:            *name,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				say("leading", *identity)
				<-ctx.Done()
				say("stopped", *identity)
				close(work)
			},
			OnStoppedLeading: func() {},
		},
	})
	check(err)
	elector.Run(ctx)
	if ctx.Err() == nil {
		<-work
		check(fmt.Errorf("%s lost the lead", *identity))
	}
}

// lock gives the Lease up only after the work has ended, which client-go leaves to its users.
type lock struct {
	resourcelock.Interface
	work <-chan struct{}
}

func (lock lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if record.HolderIdentity == "" {
		<-lock.work
	}
	return lock.Interface.Update(ctx, record)
}

// say prints a line with the time, in microseconds since 1970, at which it was true.
func say(what, who string) {
	fmt.Printf("%d %s %s\n", time.Now().UnixMicro(), what, who)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
