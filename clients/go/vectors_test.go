package svc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"reflect"
	"testing"
	"time"
)

type vector struct {
	Name, Kind string
	Given      json.RawMessage
	Expect     json.RawMessage
}

type input struct {
	Body      []byte
	Headers   map[string]string
	Secrets   []string
	NowS      int64 `json:"now_s"`
	NowMs     int64 `json:"now_ms"`
	Keys      json.RawMessage
	Token     string
	Expected  action
	Event     json.RawMessage
	Action    action
	IsFirst   bool `json:"is_first"`
	Failure   any
	Status    int
	Code      string
	Message   string
	Details   []DetailBody
	After     *int64 `json:"retry_after_s"`
	Attempts  int
	Attempt   int
	CanRepeat bool `json:"is_repeatable"`
	Random    float64
	Value     string
}

type action struct {
	OrganizationID string `json:"organization_id"`
	Environment    string
	Origin, IP     *string
	Tag            *string
	AccountID      *string `json:"account_id"`
	Action         string
	Platform       string
	Proven         bool
	SameNetwork    bool `json:"same_network"`
	AllowUnknown   bool `json:"allow_unknown"`
}

func (a action) at(ms int64) Action {
	ip := AnyIP
	if a.IP != nil {
		ip = *a.IP
	}
	return Action{
		Origin: text(a.Origin), IP: ip, Tag: text(a.Tag), AccountID: a.AccountID, Action: a.Action,
		Platform: a.Platform, Proven: a.Proven, SameNetwork: a.SameNetwork, AllowUnknown: a.AllowUnknown,
		Now: time.UnixMilli(ms),
	}
}

func concluded(problem Problem, decision Decision, reasons []string) any {
	named := []any{}
	for _, reason := range reasons {
		named = append(named, reason)
	}
	made := map[string]any{"problem": nil, "decision": string(decision), "reasons": named}
	if problem != None {
		made["problem"] = string(problem)
	}
	return made
}

func run(t *testing.T, kind string, in input, raw json.RawMessage) any {
	switch kind {
	case "webhook":
		header := http.Header{}
		for name, value := range in.Headers {
			header.Set(name, value)
		}
		event, err := verifyWebhook(in.Body, header, in.Secrets, time.Unix(in.NowS, 0))
		if err != nil {
			return nil
		}
		var data struct{ Message string }
		if err := json.Unmarshal(event.Data, &data); err != nil {
			t.Fatal(err)
		}
		return data.Message
	case "verdict":
		ring := keyRing{}
		keys, err := parsed(in.Keys)
		if err != nil || ring.put(keys, time.Now()) != nil {
			t.Fatal(err)
		}
		about := in.Expected
		verdict, problems, err := ring.check(in.Token, ExpectedVerdict{about.OrganizationID, about.Environment, about.at(in.NowMs)})
		if err != nil {
			t.Fatal(err)
		}
		found := checkedVerdict(problems, verdict, about.AllowUnknown)
		return concluded(found.Problem, found.Decision(), found.Reasons())
	case "check":
		seen, _ := object(in.Event)
		event, problems, err := problemsWith(seen, in.Action.at(in.NowMs), requestID)
		var refused *APIError
		if errors.As(err, &refused) {
			return map[string]any{"error": refused.Code}
		}
		if err != nil {
			t.Fatal(err)
		}
		if mayCount(problems) && !in.IsFirst {
			problems = []Problem{UsedBefore}
		}
		found := checked(problems, event, in.Action.AllowUnknown)
		return concluded(found.Problem, found.Decision(), found.Reasons())
	case "retry_after":
		if wait, isAsked := retryAfter(in.Value, time.UnixMilli(in.NowMs)); isAsked {
			return wait.Seconds()
		}
		return nil
	case "event", "keys", "page", "refusal":
		return answered(t, kind, in)
	case "message":
		return (&APIError{Status: in.Status, Code: in.Code, Message: in.Message, Details: in.Details}).Error()
	case "wait":
		retries := DefaultRetries()
		retries.Attempts = in.Attempts
		failure := error(&UnreachableError{WasSent: in.Failure == "lost"})
		if status, isStatus := in.Failure.(float64); isStatus {
			refused := &APIError{Status: int(status), RetryAfter: -1}
			if in.After != nil {
				refused.RetryAfter = time.Duration(*in.After) * time.Second
			}
			failure = refused
		}
		if wait, isOther := retries.wait(failure, in.Attempt, in.CanRepeat, in.Random); isOther {
			return float64(wait) / float64(time.Millisecond)
		}
		return nil
	case "visitor_headers":
		var headers map[string]string
		if err := json.Unmarshal(raw, &headers); err != nil {
			t.Fatal(err)
		}
		header := http.Header{}
		for name, value := range headers {
			header.Set(name, value)
		}
		made := VisitorHeaders(header)
		for _, one := range []byte(made) {
			if one < 0x20 || one > 0x7e || len(made) > maxVisitorHeaders {
				t.Fatalf("%q cannot be sent", made)
			}
		}
		return decode(t, []byte(made))
	}
	t.Fatalf("there is no kind %s", kind)
	return nil
}

const requestID = "01993f0e-52a1-7c3d-9b52-6f1f3c0a9d11"

// answering has one response.
type answering struct{ *http.Response }

func (a answering) RoundTrip(*http.Request) (*http.Response, error) { return a.Response, nil }

func isFirst(context.Context, string) (bool, error) { return true, nil }

// answered is what comes of a response.
func answered(t *testing.T, kind string, in input) any {
	t.Helper()
	response := &http.Response{StatusCode: in.Status, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(in.Body))}
	if response.StatusCode == 0 {
		response.StatusCode = http.StatusOK
	}
	for name, value := range in.Headers {
		response.Header.Set(name, value)
	}
	client, err := New("http://127.0.0.1:9", "svc_sk_key", WithTransport(answering{response}), WithRetries(Retries{Attempts: 1}))
	if err != nil {
		t.Fatal(err)
	}
	var found any
	switch kind {
	case "event":
		checked, failure := client.Check(t.Context(), requestID, in.Action.at(in.NowMs), isFirst)
		found, err = concluded(checked.Problem, checked.Decision(), checked.Reasons()), failure
	case "keys":
		about := in.Expected
		expected := ExpectedVerdict{about.OrganizationID, about.Environment, about.at(in.NowMs)}
		checked, failure := client.CheckVerdict(t.Context(), in.Token, expected, isFirst)
		found, err = concluded(checked.Problem, checked.Decision(), checked.Reasons()), failure
	case "page":
		ids := []any{}
		for row, failure := range client.IterateEvents(t.Context(), ListEventsQuery{}) {
			if err = failure; err == nil {
				ids = append(ids, row.RequestID)
			}
		}
		found = ids
	case "refusal":
		_, err = client.GetHealth(t.Context())
	}
	var refused *APIError
	switch {
	case err == nil:
		return found
	case !errors.As(err, &refused):
		return map[string]any{"error": "argument"}
	case kind != "refusal":
		return map[string]any{"error": refused.Code}
	case refused.RetryAfter < 0:
		return map[string]any{"code": refused.Code, "retry_after_s": nil}
	}
	return map[string]any{"code": refused.Code, "retry_after_s": refused.RetryAfter.Seconds()}
}

func decode(t *testing.T, text []byte) (value any) {
	t.Helper()
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func TestVectors(t *testing.T) {
	count := 0
	for _, name := range []string{"webhook", "verdict", "check", "responses"} {
		text, err := os.ReadFile("../vectors/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var file struct{ Cases []vector }
		if err := json.Unmarshal(text, &file); err != nil {
			t.Fatal(err)
		}
		for _, one := range file.Cases {
			t.Run(name+"/"+one.Name, func(t *testing.T) {
				var in input
				if one.Kind != "visitor_headers" {
					if err := json.Unmarshal(one.Given, &in); err != nil {
						t.Fatal(err)
					}
				}
				if found := run(t, one.Kind, in, one.Given); !reflect.DeepEqual(found, decode(t, one.Expect)) {
					t.Errorf("%v, not %s", found, one.Expect)
				}
			})
			count++
		}
	}
	t.Logf("%d cases", count)
}
