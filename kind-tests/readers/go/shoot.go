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
func shoot(raw json.RawMessage) (any, error) {
	var read gardenerShoot
	if err := kubejson.UnmarshalCaseSensitivePreserveInts(raw, &read); err != nil {
		return nil, err
	}
	workers := []any{}
	for _, worker := range read.Spec.Provider.Workers {
		var conditions []string
		if worker.MachineControllerManager != nil {
			conditions = append([]string{}, worker.MachineControllerManager.NodeConditions...)
		}
		workers = append(workers, map[string]any{"name": worker.Name, "conditions": conditions})
	}
	value := map[string]any{
		"deleted":    read.DeletionTimestamp != nil,
		"hibernates": read.Spec.Hibernation != nil && read.Spec.Hibernation.Enabled != nil && *read.Spec.Hibernation.Enabled,
		"hibernated": read.Status.IsHibernated,
		"workers":    workers,
		"grace":      nil,
		"operation":  nil,
		"seeds":      []*string{read.Spec.SeedName, read.Status.SeedName},
	}
	if manager := read.Spec.Kubernetes.KubeControllerManager; manager != nil && manager.NodeMonitorGracePeriod != nil {
		value["grace"] = manager.NodeMonitorGracePeriod.Nanoseconds()
	}
	if operation := read.Status.LastOperation; operation != nil {
		value["operation"] = []string{operation.Type, operation.State}
	}
	return value, nil
}
