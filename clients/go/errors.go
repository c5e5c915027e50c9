package svc

import (
	"fmt"
	"strings"
	"time"
)

// APIError says that the service refused a request, or failed.
type APIError struct {
	Status int
	// Code such as rate_limited; unexpected_response where the response is not of this service.
	Code string
	// Message for people: what to do about it.
	Message string
	// Details has each fault in the request; Error names them.
	Details []DetailBody
	// RequestID to quote to the operator; empty where there is none.
	RequestID string
	// RetryAfter is for how long the service asks to wait; negative where it does not ask.
	RetryAfter time.Duration
}

func (e *APIError) Error() string {
	faults := make([]string, len(e.Details))
	for i, detail := range e.Details {
		field := detail.Field
		if field == "" {
			field = detail.Location
		}
		faults[i] = field + ": " + detail.Issue
	}
	said := fmt.Sprintf("%d %s: %s", e.Status, e.Code, e.Message)
	if len(faults) > 0 {
		said += " (" + strings.Join(faults, ", ") + ")"
	}
	return said
}

// unexpected is the error for a response of a proxy, or of something else at this address.
func unexpected(status int) *APIError {
	message := "The response is not one of this service."
	return &APIError{Status: status, Code: "unexpected_response", Message: message, RetryAfter: -1}
}

// UnreachableError says that no response arrived: the connection failed, took too long, or the context ended.
type UnreachableError struct {
	// WasSent is false where there was no connection, so that nothing can have been done.
	WasSent bool
	address string
	cause   error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("no response from %s: %v", e.address, e.cause)
}

// Unwrap returns the error of the transport or of the context.
func (e *UnreachableError) Unwrap() error { return e.cause }

// WebhookError says that a delivery is not authentic, or no webhook of this version. Answer 401, and do nothing else
// with it.
type WebhookError struct{ reason string }

func (e *WebhookError) Error() string { return e.reason }
