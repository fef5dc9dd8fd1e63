//go:build lab

package gcs_test

import (
	"net"
	"os"
	"testing"
	"time"

	"github.com/spark-stack/terraform-provider-spark/internal/ray/gcs"
)

// TestRealGCS asks the Ray whose GCS SPARK_LAB_GCS names ("10.1.230.180:6379") and shows its answer.
func TestRealGCS(t *testing.T) {
	address := os.Getenv("SPARK_LAB_GCS")
	if address == "" {
		t.Skip("SPARK_LAB_GCS is not set")
	}
	client := gcs.New(gcs.Transport((&net.Dialer{}).DialContext), address, gcs.Credential{Token: os.Getenv("SPARK_LAB_TOKEN")})
	for range 5 {
		start := time.Now()
		table, err := client.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("answered in %s", time.Since(start))
		for _, node := range table.Nodes {
			t.Logf("%+v", node)
		}
		for _, group := range table.Groups {
			t.Logf("%+v", group)
		}
		if len(table.Alive()) == 0 || table.Alive()[0].Available == nil || !table.Alive()[0].Offers(table.Alive()[0].Address) {
			t.Fatalf("no alive node with its resources: %+v", table)
		}
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
}
