// Command check holds what the chart makes against the types that Kubernetes itself reads: a field that is not one of a
// kind's, or has another type, is an error here, where a server would drop it. It also checks what no type says: that
// pods are shut in and probed, that whoever selects pods finds some, and that each mount has its volume.
//
//	helm template … | go run . FOLDER
//
// KEDA's objects are written into the folder, for "lab manifest", which has KEDA's own definition of them.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	if err := run(os.Stdin, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// object is what every object begins with.
type object struct {
	meta.TypeMeta   `json:",inline"`
	meta.ObjectMeta `json:"metadata"`
}

func run(in io.Reader, folder string) error {
	raw, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	var deployments []apps.Deployment
	var jobs []batch.Job
	selectors := map[string]map[string]string{} // who selects pods
	covered := map[string]bool{}                // components with a network policy
	names := map[string]bool{}
	count := map[string]int{}
	for _, one := range regexp.MustCompile(`(?m)^---.*$`).Split(string(raw), -1) {
		if len(bytes.TrimSpace([]byte(one))) == 0 {
			continue
		}
		var o object
		if err := yaml.Unmarshal([]byte(one), &o); err != nil {
			return fmt.Errorf("%w in %s", err, one)
		}
		if o.Kind == "" {
			continue // comments alone
		}
		name := o.Kind + " " + o.Name
		if names[name] {
			return fmt.Errorf("there are two of %s", name)
		}
		names[name] = true
		count[o.Kind]++
		switch o.APIVersion + " " + o.Kind {
		case "apps/v1 Deployment":
			var d apps.Deployment
			err = yaml.UnmarshalStrict([]byte(one), &d)
			deployments = append(deployments, d)
		case "batch/v1 Job":
			var j batch.Job
			err = yaml.UnmarshalStrict([]byte(one), &j)
			jobs = append(jobs, j)
		case "v1 Service":
			var s core.Service
			err = yaml.UnmarshalStrict([]byte(one), &s)
			selectors[name] = s.Spec.Selector
		case "v1 ConfigMap":
			err = yaml.UnmarshalStrict([]byte(one), &core.ConfigMap{})
		case "policy/v1 PodDisruptionBudget":
			var b policy.PodDisruptionBudget
			if err = yaml.UnmarshalStrict([]byte(one), &b); err == nil {
				selectors[name] = b.Spec.Selector.MatchLabels
			}
		case "networking.k8s.io/v1 NetworkPolicy":
			var p networking.NetworkPolicy
			err = yaml.UnmarshalStrict([]byte(one), &p)
			selectors[name], covered[o.Name] = p.Spec.PodSelector.MatchLabels, len(p.Spec.PolicyTypes) == 2
		case "monitoring.coreos.com/v1 ServiceMonitor":
			err = yaml.UnmarshalStrict([]byte(one), &monitoring.ServiceMonitor{})
		case "keda.sh/v1alpha1 ScaledObject":
			err = os.WriteFile(filepath.Join(folder, o.Name+".yaml"), []byte(one), 0o600)
		default:
			err = fmt.Errorf("nothing is known of %s %s", o.APIVersion, o.Kind)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if len(deployments) == 0 {
		return errors.New("there is no deployment")
	}
	var pods []map[string]string // their labels
	for _, j := range jobs {
		pods = append(pods, j.Spec.Template.Labels)
		if err := shut(&j.Spec.Template.Spec, true); err != nil {
			return fmt.Errorf("%s: %w", j.Name, err)
		}
		if len(covered) > 0 && !covered[j.Name] {
			return fmt.Errorf("no network policy is for %s", j.Name)
		}
	}
	for _, d := range deployments {
		pods = append(pods, d.Spec.Template.Labels)
		if !contains(d.Spec.Template.Labels, d.Spec.Selector.MatchLabels) {
			return fmt.Errorf("%s: its selector does not select its pods", d.Name)
		}
		if err := shut(&d.Spec.Template.Spec, false); err != nil {
			return fmt.Errorf("%s: %w", d.Name, err)
		}
		if len(covered) > 0 && !covered[d.Name] {
			return fmt.Errorf("no network policy is for %s", d.Name)
		}
		if d.Spec.Replicas != nil && *d.Spec.Replicas > 1 && !names["PodDisruptionBudget "+d.Name] {
			return fmt.Errorf("%s has no PodDisruptionBudget", d.Name)
		}
	}
	for who, labels := range selectors {
		if !slices.ContainsFunc(pods, func(of map[string]string) bool { return contains(of, labels) }) {
			return fmt.Errorf("%s selects no pod", who)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(count)) {
		fmt.Printf("%d %s  ", count[kind], kind)
	}
	fmt.Println()
	return nil
}

func contains(all, some map[string]string) bool {
	for k, v := range some {
		if all[k] != v {
			return false
		}
	}
	return len(some) > 0
}

// asked is the variable of a program that answers probes.
func asked(e core.EnvVar) bool { return e.Name == "STEPJET_HEALTH" }

// shut checks a pod: what it may, how it is probed, unless it runs once, and that all it mounts is there.
func shut(pod *core.PodSpec, once bool) error {
	if s := pod.SecurityContext; s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.SeccompProfile == nil {
		return errors.New("its pods may run as root, or without a seccomp profile")
	}
	if pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken {
		return errors.New("its pods have a token of Kubernetes")
	}
	volumes := map[string]bool{}
	for _, v := range pod.Volumes {
		volumes[v.Name] = true
	}
	for _, c := range pod.Containers {
		s := c.SecurityContext
		switch {
		case s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem:
			return errors.New("its root can be written to")
		case s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []core.Capability{"ALL"}):
			return errors.New("it keeps capabilities")
		case once && (c.LivenessProbe != nil || c.ReadinessProbe != nil || c.StartupProbe != nil):
			return errors.New("it runs once and is probed")
		case once:
		case !slices.ContainsFunc(c.Env, asked) && c.Name == "toolworker": // values say that it answers nobody
		case c.LivenessProbe == nil || c.ReadinessProbe == nil || c.StartupProbe == nil:
			return errors.New("it is not probed")
		}
		if c.Resources.Limits.Memory().IsZero() {
			return errors.New("its memory has no limit")
		}
		ports := map[string]bool{}
		for _, p := range c.Ports {
			ports[p.Name] = true
		}
		for _, p := range []*core.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
			if p == nil {
				continue
			}
			at := ""
			if p.HTTPGet != nil {
				at = p.HTTPGet.Port.StrVal
			} else if p.TCPSocket != nil {
				at = p.TCPSocket.Port.StrVal
			}
			if !ports[at] {
				return fmt.Errorf("it is probed at %q, which is none of its ports", at)
			}
		}
		for _, m := range c.VolumeMounts {
			if !volumes[m.Name] {
				return fmt.Errorf("%s is mounted and not there", m.Name)
			}
			delete(volumes, m.Name)
		}
		seen := map[string]bool{}
		for _, e := range c.Env {
			if seen[e.Name] {
				return fmt.Errorf("the variable %s is set twice", e.Name)
			}
			seen[e.Name] = true
		}
	}
	if len(volumes) > 0 {
		return fmt.Errorf("nobody mounts %v", volumes)
	}
	return nil
}
