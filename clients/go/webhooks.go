package svc

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const webhookTolerance = 5 * time.Minute

var timestampForm = regexp.MustCompile(`^[0-9]{1,12}$`)

// WebhookEvent is what a delivery says.
type WebhookEvent struct {
	// ID is the same on every attempt: skip those that you know.
	ID string `json:"id"`
	// Type such as identification.completed.
	Type           string `json:"type"`
	Version        int    `json:"version"`
	OrganizationID string `json:"organization_id"`
	// Environment is live or test.
	Environment string `json:"environment"`
	// CreatedAt is when the fact happened, RFC 3339 in UTC.
	CreatedAt string `json:"created_at"`
	// Data of identification.completed and visitor.suspect is an EventBody.
	Data json.RawMessage `json:"data"`
}

// VerifyWebhook returns the event of an authentic delivery; the error of any other is a *WebhookError.
//
// body is the exact bytes that arrived. secrets has the endpoint's signing secret, two while you rotate.
func VerifyWebhook(body []byte, header http.Header, secrets ...string) (*WebhookEvent, error) {
	return verifyWebhook(body, header, secrets, time.Now())
}

func verifyWebhook(body []byte, header http.Header, secrets []string, now time.Time) (*WebhookEvent, error) {
	timestamp := header.Get("X-Svc-Timestamp")
	if !timestampForm.MatchString(timestamp) {
		return nil, &WebhookError{"the delivery has no timestamp"}
	}
	seconds, _ := strconv.ParseInt(timestamp, 10, 64)
	if now.Sub(time.Unix(seconds, 0)).Abs() > webhookTolerance {
		return nil, &WebhookError{"the delivery was signed more than 300 seconds from now"}
	}
	if !isSigned(body, timestamp, header.Get("X-Svc-Signature"), secrets) {
		return nil, &WebhookError{"the signature is by none of the secrets"}
	}
	read, isObject := object(body)
	if !isObject {
		return nil, &WebhookError{"the body is not an event"}
	}
	_, hasID := read.text("id")
	_, hasType := read.text("type")
	version, isWhole := read.integer("version")
	if _, hasData := read["data"].(map[string]any); !hasID || !hasType || !hasData || !isWhole || version != 1 {
		return nil, &WebhookError{"the body is not an event of version 1"}
	}
	event := &WebhookEvent{}
	fill(reflect.ValueOf(event).Elem(), map[string]any(read))
	return event, nil
}

func isSigned(body []byte, timestamp, signature string, secrets []string) bool {
	for _, secret := range secrets {
		secret = strings.TrimSpace(secret)
		if secret == "" {
			continue
		}
		digest := hmac.New(sha256.New, []byte(secret))
		digest.Write([]byte(timestamp + "."))
		digest.Write(body)
		expected := []byte("sha256=" + hex.EncodeToString(digest.Sum(nil)))
		for part := range strings.SplitSeq(signature, ",") {
			if hmac.Equal(expected, []byte(strings.TrimSpace(part))) {
				return true
			}
		}
	}
	return false
}
