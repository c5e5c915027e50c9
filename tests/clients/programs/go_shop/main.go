// A shop that decides about sign-ups: it prints what came of each line of its input.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"

	"svc.internal/svc"
)

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
}

func main() {
	url, key, origin, organization := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	ctx, client := context.Background(), must(svc.New(url, key))
	used := map[string]bool{}
	isFirstUse := func(_ context.Context, id string) (bool, error) {
		isNew := !used[id]
		used[id] = true
		return isNew, nil
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		cells := strings.Split(lines.Text(), "\t")
		action := svc.Action{Origin: origin, Tag: cells[1], Action: "sign_up", IP: cells[2], AllowUnknown: true}
		var decision svc.Decision
		var reasons []string
		if id := cells[0]; strings.Contains(id, ".") {
			expected := svc.ExpectedVerdict{OrganizationID: organization, Environment: "development", Action: action}
			found := must(client.CheckVerdict(ctx, id, expected, isFirstUse))
			decision, reasons = found.Decision(), found.Reasons()
		} else {
			found := must(client.Check(ctx, id, action, isFirstUse))
			decision, reasons = found.Decision(), found.Reasons()
		}
		fmt.Println(decision + "\t" + svc.Decision(strings.Join(reasons, "\t")))
	}
}
