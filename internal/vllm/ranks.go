package vllm

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/spark-stack/terraform-provider-spark/internal/diagnose"
	"github.com/spark-stack/terraform-provider-spark/internal/ray"
)

// rankLines is how much of each Ray container's log is read when a start failed.
const rankLines = 200

// ranks reads the end of every Ray container's log, and adds to the evidence how nodes and containers are. What
// cannot be read is left out: it is another failure that is to be explained.
func (s *starter) ranks(ctx context.Context, evidence diagnose.Evidence) []diagnose.Log {
	members := s.spec.Cluster.Members
	logs := make([]diagnose.Log, len(members))
	nodes := make([]diagnose.Node, len(members))
	var group errgroup.Group
	for i, member := range members {
		nodes[i], logs[i] = evidence.Nodes[member.Host], diagnose.Log{Name: ray.ContainerName(s.spec.Cluster.Name) + " on " + member.Host, Host: member.Host}
		group.Go(func() error {
			machine, err := s.machines.of(member.Host)
			if err != nil {
				return err
			}
			if facts, err := machine.Facts(ctx); err == nil {
				nodes[i].Facts = &facts
			}
			docker, err := machine.Engine(ctx)
			if err != nil {
				return err
			}
			container, err := docker.Container(ctx, ray.ContainerName(s.spec.Cluster.Name))
			if err != nil {
				return err
			}
			nodes[i].Container = &diagnose.Container{Status: container.Status, ExitCode: container.ExitCode, OOMKilled: container.OOMKilled}
			logs[i].Text, err = docker.Logs(ctx, container.ID, rankLines)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		s.report("not every rank's log could be read: " + err.Error())
	}
	for i, member := range members {
		evidence.Nodes[member.Host] = nodes[i]
	}
	return logs
}
