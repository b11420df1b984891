package main

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// textAndPods is a text that selects, and the labels of pods.
type textAndPods struct {
	Text string       `json:"text"`
	Pods []labels.Set `json:"pods"`
}

// query tells which of the pods an API server would list that is asked for this labelSelector.
func query(asked textAndPods) (string, error) {
	selector, err := labels.Parse(asked.Text)
	if err != nil {
		return "", err
	}
	return matches(selector, asked.Pods), nil
}

// matches has a 1 for each pod that is selected and a 0 for each other.
func matches(selector labels.Selector, pods []labels.Set) string {
	selected := make([]byte, len(pods))
	for index, pod := range pods {
		selected[index] = '0'
		if selector.Matches(pod) {
			selected[index] = '1'
		}
	}
	return string(selected)
}

type weederConfig struct {
	ServicesAndDependantSelectors map[string]struct {
		PodSelectors []*metav1.LabelSelector `json:"podSelectors"`
	} `json:"servicesAndDependantSelectors"`
}

// selectors tells for each Service and selector of a weeder's file, as JSON, which of the pods are selected (rule 26).
func selectors(asked textAndPods) (map[string][]string, error) {
	var config weederConfig
	if err := json.Unmarshal([]byte(asked.Text), &config); err != nil {
		return nil, err
	}
	services := map[string][]string{}
	for name, service := range config.ServicesAndDependantSelectors {
		if len(service.PodSelectors) == 0 {
			return nil, fmt.Errorf("%s: podSelectors is empty", name)
		}
		for _, selector := range service.PodSelectors {
			selector, err := metav1.LabelSelectorAsSelector(selector)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			services[name] = append(services[name], matches(selector, asked.Pods))
		}
	}
	return services, nil
}
