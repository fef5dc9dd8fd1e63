package gcs

import (
	"math"
	"testing"
)

// FuzzDecode feeds the four decoders what no GCS would send: they must answer with a table or an
// error, and never with an amount that no arithmetic survives.
func FuzzDecode(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x12\x05zz"))
	f.Add([]byte("\x12\x16\x0a\x02\x0a\x01\x12\x0e192.168.200.12\x38\x01"))
	f.Add([]byte("\x12\x13\x1a\x11\x22\x0e\x0a\x03GPU\x11\x00\x00\x00\x00\x00\x00\xf0\x3f"))
	f.Add([]byte("\x12\x13\x1a\x11\x22\x0e\x0a\x03GPU\x11\x00\x00\x00\x00\x00\x00\xf8\x7f"))
	f.Add([]byte("\x13\x0b\x0c\x14"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if nodes, err := decodeNodes(data); err == nil {
			for _, node := range nodes {
				for name, amount := range node.Total {
					if math.IsNaN(amount) || math.IsInf(amount, 0) {
						t.Errorf("%s is %v", name, amount)
					}
				}
				node.GPUsUsed()
			}
		}
		if groups, err := decodeGroups(data); err == nil {
			for _, group := range groups {
				if group.State == GroupRemoved {
					t.Error("a removed group was kept")
				}
			}
		}
		if states, err := decodeStatus(data); err == nil {
			for _, one := range states {
				for name, amount := range one.available {
					if math.IsNaN(amount) {
						t.Errorf("%s is %v", name, amount)
					}
				}
			}
		}
	})
}
