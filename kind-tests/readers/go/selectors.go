package main

import "k8s.io/apimachinery/pkg/labels"

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
