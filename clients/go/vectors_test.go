package svc

import (
	"encoding/json"
	"errors"
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
	Keys      []JwkBody
	Token     string
	Expected  action
	Event     EventDetailBody
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
		ring.put(in.Keys, time.Now())
		about := in.Expected
		verdict, problems, err := ring.check(in.Token, ExpectedVerdict{about.OrganizationID, about.Environment, about.at(in.NowMs)})
		if err != nil {
			t.Fatal(err)
		}
		found := checkedVerdict(problems, verdict, about.AllowUnknown)
		return concluded(found.Problem, found.Decision(), found.Reasons())
	case "check":
		problems, err := problemsWith(&in.Event, in.Action.at(in.NowMs))
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
		found := checked(problems, &in.Event, in.Action.AllowUnknown)
		return concluded(found.Problem, found.Decision(), found.Reasons())
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

func decode(t *testing.T, text []byte) (value any) {
	t.Helper()
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func TestVectors(t *testing.T) {
	count := 0
	for _, name := range []string{"webhook", "verdict", "check"} {
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
