package svc

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"
)

// TestConnections prints whether a request may have been carried out, for each server of SVC_CONNECTIONS.
func TestConnections(t *testing.T) {
	text := os.Getenv("SVC_CONNECTIONS")
	if text == "" {
		t.Skip("SVC_CONNECTIONS is not set")
	}
	var given struct {
		TimeoutMs int64 `json:"timeout_ms"`
		Places    map[string]string
	}
	if err := json.Unmarshal([]byte(text), &given); err != nil {
		t.Fatal(err)
	}
	var calls sync.WaitGroup
	for name, place := range given.Places {
		client, err := New(place, "svc_mk_key",
			WithTimeout(time.Duration(given.TimeoutMs)*time.Millisecond), WithRetries(Retries{Attempts: 1}))
		if err != nil {
			t.Fatal(err)
		}
		calls.Add(1)
		go func() {
			defer calls.Done()
			_, err := client.TestWebhook(t.Context(), "org", "whk")
			var lost *UnreachableError
			said := fmt.Sprint(err)
			if errors.As(err, &lost) {
				said = fmt.Sprint(lost.WasSent)
			}
			fmt.Printf("connection\t%s\t%s\n", name, said)
		}()
	}
	calls.Wait()
}
