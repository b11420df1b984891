package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// queryAsked is what goes into a request's labelSelector, and the labels of pods.
type queryAsked struct {
	Text string              `json:"text"`
	Pods []map[string]string `json:"pods"`
}

// query tells which of the pods an API server would list.
func query(asked queryAsked) (any, error) {
	selector, err := labels.Parse(asked.Text)
	if err != nil {
		return nil, err
	}
	return matches(selector, asked.Pods), nil
}

func selectedBy(selector *metav1.LabelSelector, pods []map[string]string) (string, error) {
	converted, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return "", err
	}
	return matches(converted, pods), nil
}

// matches has a 1 for each pod that is selected and a 0 for each other.
func matches(selector labels.Selector, pods []map[string]string) string {
	selected := make([]byte, len(pods))
	for index, pod := range pods {
		selected[index] = '0'
		if selector.Matches(labels.Set(pod)) {
			selected[index] = '1'
		}
	}
	return string(selected)
}
