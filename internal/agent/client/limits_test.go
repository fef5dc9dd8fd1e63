package client

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/server"
)

func TestFactsHaveALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		helper, err := Start(t.Context(), "10.1.230.180", inProcess(t, server.Options{
			User:      &agent.User{Name: "aurora"},
			NvidiaSMI: func(context.Context) (string, error) { <-stuck; return "", errors.New("stuck") },
		}), Options{})
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		_, err = helper.Facts(t.Context())
		if err == nil || !strings.Contains(err.Error(), "within 30s") || time.Since(begun) != factsTimeout {
			t.Errorf("after %s: %v", time.Since(begun), err)
		}
		select {
		case <-helper.Done():
			t.Error("a slow answer ended the agent")
		default:
		}
		close(stuck)
		if err := helper.Close(); err != nil {
			t.Error(err)
		}
		<-helper.Done()
	})
}
