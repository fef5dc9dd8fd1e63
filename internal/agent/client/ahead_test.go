package client

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/agent"
	"github.com/spark-stack/terraform-provider-spark/internal/agent/server"
)

// What is asked together with the start is answered once, and never after a change.
func TestFactsOfTheStart(t *testing.T) {
	var looks atomic.Int32
	looked := make(chan struct{}, 9)
	options := server.Options{User: &agent.User{Name: "aurora"}, NvidiaSMI: func(context.Context) (string, error) {
		defer func() { looked <- struct{}{} }()
		return fmt.Sprintf("0, GPU of look %d, GPU-1, 580\n", looks.Add(1)), nil
	}}
	for name, test := range map[string]struct {
		forget bool
		want   [2]string
	}{
		"taken once":             {false, [2]string{"GPU of look 1", "GPU of look 2"}},
		"dropped after a change": {true, [2]string{"GPU of look 2", "GPU of look 3"}},
	} {
		t.Run(name, func(t *testing.T) {
			looks.Store(0)
			helper, err := Start(t.Context(), "spark-a", inProcess(t, options), Options{Facts: true})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = helper.Close() }()
			select {
			case <-looked: // before anybody has asked
			case <-time.After(10 * time.Second):
				t.Fatal("nothing was asked with the start")
			}
			if test.forget {
				helper.Forget()
			}
			for _, want := range test.want {
				facts, err := helper.Facts(t.Context())
				if err != nil || len(facts.GPUs) != 1 || facts.GPUs[0].Name != want {
					t.Errorf("%+v, %v, want %s", facts.GPUs, err, want)
				}
			}
			for len(looked) > 0 {
				<-looked
			}
		})
	}
}
