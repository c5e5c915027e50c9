package svc

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestHostile prints what Check comes to with each behavior of ../vectors/hostile.py, which runs at SVC_HOSTILE.
func TestHostile(t *testing.T) {
	place := os.Getenv("SVC_HOSTILE")
	if place == "" {
		t.Skip("SVC_HOSTILE is not set")
	}
	text, err := os.ReadFile("../vectors/hostile.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Cases []struct {
			Given struct {
				Behavior   string
				TimeoutMs  int64 `json:"timeout_ms"`
				DeadlineMs int64 `json:"deadline_ms"`
			}
		}
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	var calls sync.WaitGroup
	for _, one := range file.Cases {
		given := one.Given
		client, err := New(place+"/"+strings.ReplaceAll(given.Behavior, " ", "_"), "svc_sk_key",
			WithTimeout(time.Duration(given.TimeoutMs)*time.Millisecond),
			WithDeadline(time.Duration(given.DeadlineMs)*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		calls.Add(1)
		go func() {
			defer calls.Done()
			began := time.Now()
			checked, err := client.Check(t.Context(), requestID, Action{Origin: "https://shop.example", Tag: "signup"}, isFirst)
			took := time.Since(began)
			fmt.Printf("hostile\t%s\t%s\t%d\n", given.Behavior, resultOf(checked, err), took.Milliseconds())
		}()
	}
	calls.Wait()
}

func resultOf(checked Checked, err error) string {
	var refused *APIError
	var lost *UnreachableError
	switch {
	case err == nil:
		return string(checked.Decision())
	case errors.As(err, &refused):
		return fmt.Sprintf("%d %s", refused.Status, refused.Code)
	case errors.As(err, &lost):
		return "unreachable"
	}
	return err.Error()
}
