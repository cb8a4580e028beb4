package reference

import (
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/pkg/apis/batch"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/scheduling"

	"github.com/admissiontest/admissiontest/fakes"
	"github.com/admissiontest/admissiontest/framework"
)

// workloads are the gates of Workloads, on.
func workloads(*fakes.World) []fakes.Injector {
	return []fakes.Injector{fakes.InjectFeatureGates(fakes.Gates(map[featuregate.Feature]bool{"GenericWorkload": true, "WorkloadWithJob": true}))}
}

func podGroupEntry() entry {
	workload := func(name string, edit func(*schedulingv1alpha2.Workload)) *schedulingv1alpha2.Workload {
		made := &schedulingv1alpha2.Workload{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
			Spec:       schedulingv1alpha2.WorkloadSpec{PodGroupTemplates: []schedulingv1alpha2.PodGroupTemplate{{Name: "workers"}}},
		}
		edit(made)
		return made
	}
	subject := kubeSubject("PodGroupWorkloadExists", workload("there", func(*schedulingv1alpha2.Workload) {}),
		workload("ending", func(w *schedulingv1alpha2.Workload) {
			now := metav1.Now()
			w.DeletionTimestamp, w.Finalizers = &now, []string{"example.com/f"}
		}))
	subject.Inject = workloads
	group := func(workload, template string) *scheduling.PodGroup {
		made := &scheduling.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "g"}}
		if workload != "" {
			made.Spec.PodGroupTemplateRef = &scheduling.PodGroupTemplateReference{
				Workload: &scheduling.WorkloadPodGroupTemplateReference{WorkloadName: workload, PodGroupTemplateName: template},
			}
		}
		return made
	}
	subject.Allow = []framework.Request{
		framework.Create(group("there", "workers")), framework.Create(group("", "")), framework.Delete(group("absent", "workers")),
		framework.UpdateWith(group("absent", "workers"), func(g *scheduling.PodGroup) { g.Labels = map[string]string{"a": "b"} }),
		framework.UpdateWith(group("absent", "workers"), func(g *scheduling.PodGroup) {
			g.Status.Conditions = []metav1.Condition{{Type: "Scheduled", Status: "True"}}
		}).WithSubresource("status"),
		framework.Create(plainPod("default", "p")),
	}
	subject.Reject = []framework.Request{
		framework.Create(group("absent", "workers")), framework.Create(group("ending", "workers")), framework.Create(group("there", "leaders")),
	}
	return entry{subject: subject, waivers: []waiver{
		{"I3", "if the informers are injected before the feature gates, it does not use them and ValidateInitialization fails; the order of kube-apiserver is expected", "plugin/pkg/admission/podgroup/admission.go:81"},
	}}
}

// job is one of a pod group, or of none, whose UID a group's owner reference has.
func job(name, group string) *batch.Job {
	one := int32(1)
	made := &batch.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "20000000-0000-0000-0000-000000000001"},
		Spec:       batch.JobSpec{Parallelism: &one, Template: core.PodTemplateSpec{Spec: plainPod("", "").Spec}},
	}
	if group != "" {
		made.Spec.Template.Spec.SchedulingGroup = &core.PodSchedulingGroup{PodGroupName: &group}
	}
	return made
}

func jobValidationEntry() entry {
	group := func(name string, gang bool, owners ...metav1.OwnerReference) *schedulingv1alpha2.PodGroup {
		made := &schedulingv1alpha2.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, OwnerReferences: owners}}
		if gang {
			made.Spec.SchedulingPolicy.Gang = &schedulingv1alpha2.GangSchedulingPolicy{MinCount: 1}
		} else {
			made.Spec.SchedulingPolicy.Basic = &schedulingv1alpha2.BasicSchedulingPolicy{}
		}
		return made
	}
	yes := true
	owned := job("owned", "")
	owner := metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: owned.Name, UID: owned.UID, Controller: &yes}
	subject := kubeSubject("JobValidation", group("gang", true), group("loose", false), group("of-job", true, owner))
	subject.Inject = workloads
	widen := func(j *batch.Job) {
		two := int32(2)
		j.Spec.Parallelism = &two
	}
	label := func(j *batch.Job) { j.Labels = map[string]string{"a": "b"} }
	free := job("free", "")
	free.UID = "20000000-0000-0000-0000-000000000002"
	subject.Allow = []framework.Request{
		framework.UpdateWith(job("j", "loose"), widen), framework.UpdateWith(job("j", "gang"), label), framework.UpdateWith(job("j", "absent"), widen),
		framework.UpdateWith(free, widen), framework.UpdateWith(job("j", "gang"), widen).WithSubresource("status"),
		framework.Create(job("j", "gang")), framework.Delete(job("j", "gang")), framework.UpdateWith(plainPod("default", "p"), labelPod),
	}
	subject.Reject = []framework.Request{
		framework.UpdateWith(job("j", "gang"), widen), framework.UpdateWith(owned, widen),
	}
	return entry{subject: subject, waivers: []waiver{
		{"R1", "it registers a ready function and never waits for it: before the cache has synced, the parallelism of a gang's job can be changed; not intended", "plugin/pkg/admission/job/admission.go:82"},
		{"I3", "if the informers are injected before the feature gates, it does not use them and ValidateInitialization fails; the order of kube-apiserver is expected", "plugin/pkg/admission/job/admission.go:77"},
		{"S2", "it uses the namespace of the old Job, which an API server always sets", "plugin/pkg/admission/job/admission.go:135"},
	}}
}
