package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"

	"github.com/andybalholm/brotli"
	proberapi "github.com/gardener/dependency-watchdog/api/prober"
	weederapi "github.com/gardener/dependency-watchdog/api/weeder"
	"github.com/gardener/gardener/imagevector"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/gardener/gardener/pkg/component/etcd/etcd"
	kubeapiserver "github.com/gardener/gardener/pkg/component/kubernetes/apiserver"
	"github.com/gardener/gardener/pkg/component/nodemanagement/dependencywatchdog"
	"github.com/gardener/gardener/pkg/utils/secrets"
	fakesecretsmanager "github.com/gardener/gardener/pkg/utils/secrets/manager/fake"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"
)

// printSeed does as newDependencyWatchdogs in gardenlet's pkg/gardenlet/controller/seed/seed/components.go, which is private.
func printSeed(ctx context.Context, out io.Writer) error {
	image, err := imagevector.Containers().FindImage(imagevector.ContainerImageNameDependencyWatchdog)
	if err != nil {
		return err
	}
	proberConfig, err := newProberConfig()
	if err != nil {
		return err
	}
	weederConfig, err := newWeederConfig()
	if err != nil {
		return err
	}
	seed := newClient()
	for _, values := range []dependencywatchdog.BootstrapperValues{
		{Role: dependencywatchdog.RoleProber, ProberConfig: proberConfig, Image: image.String()},
		{Role: dependencywatchdog.RoleWeeder, WeederConfig: weederConfig, Image: image.String()},
	} {
		if err := dependencywatchdog.NewBootstrapper(seed, v1beta1constants.GardenNamespace, values).Deploy(ctx); err != nil {
			return err
		}
	}
	return printManaged(ctx, out, seed)
}

func newProberConfig() (proberapi.Config, error) {
	dependents, err := kubeapiserver.NewDependencyWatchdogProberConfiguration()
	return proberapi.Config{
		KubeConfigSecretName:   dependencywatchdog.KubeConfigSecretName,
		ProbeInterval:          &metav1.Duration{Duration: dependencywatchdog.DefaultProbeInterval},
		DependentResourceInfos: dependents,
	}, err
}

func newWeederConfig() (weederapi.Config, error) {
	config := weederapi.Config{
		WatchDuration:                 &metav1.Duration{Duration: dependencywatchdog.DefaultWatchDuration},
		ServicesAndDependantSelectors: map[string]weederapi.DependantSelectors{},
	}
	forEtcd, err := etcd.NewDependencyWatchdogWeederConfiguration(v1beta1constants.ETCDRoleMain)
	if err != nil {
		return config, err
	}
	forAPIServer, err := kubeapiserver.NewDependencyWatchdogWeederConfiguration()
	maps.Copy(config.ServicesAndDependantSelectors, forEtcd)
	maps.Copy(config.ServicesAndDependantSelectors, forAPIServer)
	return config, err
}

// printShoot does as gardenlet for a shoot. The Secret has no token yet: gardener-resource-manager requests it, for the
// ServiceAccount that the Secret's annotations name.
func printShoot(ctx context.Context, out io.Writer, namespace, server string, authority []byte) error {
	seed := newClient()
	ca := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v1beta1constants.SecretNameCACluster},
		Data:       map[string][]byte{secrets.DataKeyCertificateBundle: authority},
	}
	if err := seed.Create(ctx, ca); err != nil {
		return err
	}
	manager := fakesecretsmanager.New(seed, namespace)
	access := dependencywatchdog.NewAccess(seed, namespace, manager, dependencywatchdog.AccessValues{ServerInCluster: server})
	if err := access.Deploy(ctx); err != nil {
		return err
	}
	secret := &corev1.Secret{}
	if err := seed.Get(ctx, client.ObjectKey{Namespace: namespace, Name: dependencywatchdog.KubeConfigSecretName}, secret); err != nil {
		return err
	}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	secret.ResourceVersion = ""
	text, err := yaml.Marshal(secret)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "---\n%s", text); err != nil {
		return err
	}
	return printManaged(ctx, out, seed)
}

// newClient is a client of a seed that exists in memory only.
func newClient() client.Client {
	return fake.NewClientBuilder().WithScheme(kubernetes.SeedScheme).Build()
}

// printManaged prints what all ManagedResources hold, as gardenlet has written it.
func printManaged(ctx context.Context, out io.Writer, seed client.Client) error {
	managed := &resourcesv1alpha1.ManagedResourceList{}
	if err := seed.List(ctx, managed); err != nil {
		return err
	}
	for _, resource := range managed.Items {
		for _, ref := range resource.Spec.SecretRefs {
			secret := &corev1.Secret{}
			if err := seed.Get(ctx, client.ObjectKey{Namespace: resource.Namespace, Name: ref.Name}, secret); err != nil {
				return err
			}
			if _, err := fmt.Fprintln(out, "---"); err != nil {
				return err
			}
			compressed := bytes.NewReader(secret.Data[resourcesv1alpha1.CompressedDataKey])
			if _, err := io.Copy(out, brotli.NewReader(compressed)); err != nil {
				return err
			}
		}
	}
	return nil
}
