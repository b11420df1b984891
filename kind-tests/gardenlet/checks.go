package main

import (
	"context"
	"encoding/json"
	"io"

	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/gardener/gardener/pkg/gardenlet/controller/shoot/care"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// findings is what the care controller would put into the shoot's conditions.
type findings struct {
	// ScaledDown names the controllers that ControlPlaneHealthy is false for, with the reason ControllersScaledDown.
	ScaledDown []string `json:"scaledDown"`
	// ExpiredLeases is the message of EveryNodeReady with the reason TooManyExpiredNodeLeases, empty if there is none.
	ExpiredLeases string `json:"expiredLeases"`
}

func check(ctx context.Context, out io.Writer, seedKubeconfig, shootKubeconfig, namespace string) error {
	seed, err := connect(seedKubeconfig)
	if err != nil {
		return err
	}
	shoot, err := connect(shootKubeconfig)
	if err != nil {
		return err
	}
	scaledDown, err := care.CheckIfDependencyWatchdogProberScaledDownControllers(ctx, seed, namespace)
	if err != nil {
		return err
	}
	// As CheckClusterNodes lists them.
	nodes, leases := &corev1.NodeList{}, &coordinationv1.LeaseList{}
	if err := shoot.List(ctx, nodes); err != nil {
		return err
	}
	if err := shoot.List(ctx, leases, client.InNamespace(corev1.NamespaceNodeLease)); err != nil {
		return err
	}
	found := findings{ScaledDown: scaledDown}
	if err := care.CheckForExpiredNodeLeases(nodes, leases, clock.RealClock{}); err != nil {
		found.ExpiredLeases = err.Error()
	}
	return json.NewEncoder(out).Encode(found)
}

func connect(kubeconfig string) (client.Client, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	return client.New(config, client.Options{Scheme: kubernetes.SeedScheme})
}
