// Does with the library what one line of its input says, against a running service, and prints what came of it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"svc.internal/svc"
)

type action struct {
	ID, Organization, Environment string
	Now                           int64
	Origin, IP, Tag               *string
	AccountID                     *string `json:"account_id"`
	Action, Platform              string
	Proven                        bool
}

func (a action) given() svc.Action {
	ip := svc.AnyIP
	if a.IP != nil {
		ip = *a.IP
	}
	return svc.Action{
		Origin: or(a.Origin), IP: ip, Tag: or(a.Tag), AccountID: a.AccountID, Action: a.Action, Platform: a.Platform,
		Proven: a.Proven, Now: time.UnixMilli(a.Now),
	}
}

var input struct {
	URL, Nobody, Secret, Stranger, Management, Hook, Token, Event, Tag string
	Checks, Verdicts                                                   []action
	Forged                                                             []string
	Report                                                             map[string]any
	Expect                                                             action
	Login                                                              string
}

var used = map[string]bool{}

func isFirstUse(_ context.Context, id string) (bool, error) {
	isNew := !used[id]
	used[id] = true
	return isNew, nil
}

func or(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
}

func refusal(err error) []any {
	var refused *svc.APIError
	var lost *svc.UnreachableError
	switch {
	case errors.As(err, &refused):
		return []any{refused.Status, refused.Code, len(refused.Details), refused.RequestID != ""}
	case errors.As(err, &lost):
		return []any{lost.WasSent}
	}
	return []any{fmt.Sprint(err)}
}

func main() {
	ctx := context.Background()
	if err := json.NewDecoder(os.Stdin).Decode(&input); err != nil {
		panic(err)
	}
	client := must(svc.New(input.URL+"/", input.Secret))
	told := map[string]any{}
	var checks, forged, verdicts []any
	for _, one := range input.Checks {
		checked := must(client.Check(ctx, one.ID, one.given(), isFirstUse))
		checks = append(checks, []any{checked.Problem, checked.Decision()})
	}
	last := input.Verdicts[len(input.Verdicts)-1]
	used = map[string]bool{}
	for _, token := range input.Forged {
		expected := svc.ExpectedVerdict{OrganizationID: last.Organization, Environment: last.Environment, Action: last.given()}
		checked := must(client.CheckVerdict(ctx, token, expected, isFirstUse))
		forged = append(forged, []any{checked.Problem, checked.Verdict == nil})
	}
	told["unused"] = len(used)
	for _, one := range input.Verdicts {
		expected := svc.ExpectedVerdict{OrganizationID: one.Organization, Environment: one.Environment, Action: one.given()}
		checked := must(client.CheckVerdict(ctx, input.Token, expected, isFirstUse))
		verdicts = append(verdicts, []any{checked.Problem, checked.Decision()})
	}
	told["checks"], told["forged"], told["verdicts"], told["used"] = checks, forged, verdicts, slices.Collect(maps.Keys(used))
	told["updates"] = updates(ctx, client)
	told["errors"] = faults(ctx, client)
	told["identified"] = identified(ctx, client)
	told["management"] = managed(ctx)
	told["log_in"] = []any{
		must(logIn(ctx, client, input.Login, input.Tag, isFirstUse)),
		must(logIn(ctx, client, input.Login, "other", isFirstUse)),
	}
	if err := json.NewEncoder(os.Stdout).Encode(told); err != nil {
		panic(err)
	}
}

func updates(ctx context.Context, client *svc.Client) (told []any) {
	for _, body := range []svc.UpdateEventBody{
		{AccountID: svc.Value("a")}, {}, {Tag: svc.Null[string]()}, {AccountID: svc.Null[string]()},
	} {
		event := must(client.UpdateEvent(ctx, input.Event, body))
		told = append(told, []any{event.AccountID, event.AccountVerified, event.Action, event.Tag})
	}
	return told
}

func faults(ctx context.Context, client *svc.Client) map[string]any {
	stranger, lonely := must(svc.New(input.URL, input.Stranger)), must(svc.New(input.Nobody, input.Secret))
	_, refused := stranger.GetEvent(ctx, input.Event)
	_, lost := lonely.TestWebhook(ctx, "org", "whk")
	_, invalid := client.ListEvents(ctx, svc.ListEventsQuery{Limit: 100_000})
	_, nowhere := client.Check(ctx, input.Event, svc.Action{Origin: *input.Expect.Origin, IP: "nowhere", Now: time.UnixMilli(input.Expect.Now)}, isFirstUse)
	return map[string]any{
		"stranger": refusal(refused), "nobody": refusal(lost), "invalid": refusal(invalid), "nowhere": refusal(nowhere),
	}
}

func identified(ctx context.Context, client *svc.Client) map[string]any {
	tag := "a&b=é"
	body := svc.IdentifyBody{SDK: svc.SDK{Platform: svc.Value("web")}, Signals: input.Report, Tag: svc.Value(tag)}
	ids := []string{}
	for range 3 {
		answer := must(client.Identify(ctx, body, svc.IdentifyHeaders{VisitorIP: "81.2.69.160"}))
		ids = append(ids, answer.RequestID)
	}
	rows := []string{}
	for row, err := range client.IterateEvents(ctx, svc.ListEventsQuery{Tag: tag, Limit: 2}) {
		rows = append(rows, must(row, err).RequestID)
	}
	fed := []string{}
	for page, err := range client.IterateFeed(ctx, svc.ListEventsQuery{Limit: 1}, true) {
		for _, row := range must(page, err).Rows {
			fed = append(fed, row.RequestID)
		}
		if len(fed) == 2 {
			break
		}
	}
	changed := []string{}
	for page, err := range client.IterateChanges(ctx, svc.ListChangesQuery{Limit: 1}, true) {
		for _, change := range must(page, err).Changes {
			changed = append(changed, change.Type+" "+change.Event.RequestID)
		}
		if len(changed) == 2 {
			break
		}
	}
	visitor := must(client.GetEvent(ctx, ids[0])).VisitorID
	return map[string]any{"ids": ids, "rows": rows, "fed": fed, "changed": changed, "visitor": must(client.GetVisitor(ctx, visitor)).VisitorID == visitor}
}

func managed(ctx context.Context) map[string]any {
	client := must(svc.New(input.URL, input.Management))
	organization := must(client.GetManagementKey(ctx)).OrganizationID
	issued := must(client.IssueSDKKey(ctx, organization, svc.IssueSDKKeyBody{Name: "a", Environment: "staging", Kind: svc.Value("secret")}))
	must(client.RevokeSDKKey(ctx, organization, issued.Key.ID))
	_, again := client.RevokeSDKKey(ctx, organization, issued.Key.ID)
	body := svc.CreateWebhookBody{URL: input.Hook, Environment: "live", Events: []string{"visitor.suspect"}}
	endpoint := must(client.CreateWebhook(ctx, organization, body)).Endpoint
	must(0, client.DeleteWebhook(ctx, organization, endpoint.ID))
	must(0, client.EraseAccount(ctx, organization, "a"))
	return map[string]any{"again": refusal(again), "webhooks": len(must(client.ListWebhooks(ctx, organization)).Endpoints)}
}
