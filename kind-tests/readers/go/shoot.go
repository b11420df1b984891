package main

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubejson "sigs.k8s.io/json"
)

// The fields of a Shoot that decide whether it is probed, with the types that Gardener gives them.
type gardenerShoot struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Hibernation *struct {
			Enabled *bool `json:"enabled"`
		} `json:"hibernation"`
		Kubernetes struct {
			KubeControllerManager *struct {
				NodeMonitorGracePeriod *metav1.Duration `json:"nodeMonitorGracePeriod"`
			} `json:"kubeControllerManager"`
		} `json:"kubernetes"`
		Provider struct {
			Workers []struct {
				Name                     string `json:"name"`
				MachineControllerManager *struct {
					NodeConditions []string `json:"nodeConditions"`
				} `json:"machineControllerManager"`
			} `json:"workers"`
		} `json:"provider"`
		SeedName *string `json:"seedName"`
	} `json:"spec"`
	Status struct {
		IsHibernated  bool `json:"hibernated"`
		LastOperation *struct {
			Type  string `json:"type"`
			State string `json:"state"`
		} `json:"lastOperation"`
		SeedName *string `json:"seedName"`
	} `json:"status"`
}

// shoot reads an embedded Shoot as the decoder of Kubernetes does: case counts, unknown fields do not.
func shoot(raw json.RawMessage) (gardenerShoot, error) {
	var read gardenerShoot
	err := kubejson.UnmarshalCaseSensitivePreserveInts(raw, &read)
	return read, err
}
