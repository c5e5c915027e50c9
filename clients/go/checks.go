package svc

import (
	"fmt"
	"net/netip"
	"time"
)

// Problem says why an identification does not belong to an action. Others may be added.
type Problem string

// What a Problem is now. None, the empty one, says that the identification belongs to the action.
const (
	None          Problem = ""
	NotFound      Problem = "not_found"
	Invalid       Problem = "invalid"
	TooOld        Problem = "too_old"
	OtherOrigin   Problem = "other_origin"
	OtherAddress  Problem = "other_address"
	OtherTag      Problem = "other_tag"
	OtherAccount  Problem = "other_account"
	OtherAction   Problem = "other_action"
	OtherPlatform Problem = "other_platform"
	Unproven      Problem = "unproven"
	UsedBefore    Problem = "used_before"
)

// Decision says what to do about a log-in.
type Decision string

// What a Decision is. Verify asks for a second factor.
const (
	Accept Decision = "accept"
	Verify Decision = "verify"
	Refuse Decision = "refuse"
)

// AnyIP as Action.IP does not compare the address.
const AnyIP = "any"

const (
	maxAge          = 5 * time.Minute
	clockSkew       = 30 * time.Second
	knownConfidence = 90
)

// Action is what is being served.
type Action struct {
	// Origin of the page; empty for an app.
	Origin string
	// IP is the address that is talking to you, without its port. AnyIP does not compare it; an empty one is an error.
	IP string
	// Tag is that of this action, best a random value of this session; empty for none.
	Tag string
	// AccountID is that of your session; nil does not compare it. OtherAccount is the problem of another one, and of
	// none. At a sign-up there is none yet: UpdateEvent sets it.
	AccountID *string
	// Action is what is being served, such as log_in; empty does not compare it.
	Action string
	// Platform by which it must have been scored: web, android or ios; empty does not compare it. A report that names
	// another platform than its page or app is scored by other weights.
	Platform string
	// Proven says whether only a visit that its browser proved belongs to this action: Unproven is the problem of
	// another one. A first visit is never proven.
	Proven bool
	// Now is the time; the zero one is that of the machine.
	Now time.Time
}

func (a Action) now() time.Time {
	if a.Now.IsZero() {
		return time.Now()
	}
	return a.Now
}

// Checked is what came of the checks: an event that belongs to an action, or a problem.
type Checked struct {
	// Problem is None where it belongs to the action. Then, and only then, rely on Event.
	Problem Problem
	// Event as it was read, also beside a problem, for the log; nil where there is none.
	Event *EventDetailBody
}

// Decision is what the backend guide does with it at a log-in; an identification with a problem is refused.
func (c Checked) Decision() Decision {
	if c.Problem != None || c.Event == nil {
		return Refuse
	}
	return Decide(c.Event)
}

// Decide says what to do about a log-in with an event that belongs to it.
func Decide(event *EventDetailBody) Decision {
	return decide(event.SuspectLevel, event.Identifiable, event.VisitorConfidence)
}

// decide: a level that is absent is of a report that could not be scored.
func decide(level *string, isIdentifiable bool, confidence int64) Decision {
	switch {
	case level != nil && *level == "high":
		return Refuse
	case level != nil && *level == "low" && isIdentifiable && confidence >= knownConfidence:
		return Accept
	}
	return Verify
}

// problemWith is the first check that fails, but for the first use, which only a memory can tell.
func problemWith(event *EventDetailBody, action Action) (Problem, error) {
	occurred, err := time.Parse(time.RFC3339Nano, event.OccurredAt)
	if err != nil {
		return TooOld, nil
	}
	if age := action.now().Sub(occurred); age <= -clockSkew || age >= maxAge {
		return TooOld, nil
	}
	return difference(identified{
		event.Origin, event.Tag, event.AccountID, event.Action, event.IPAddress, event.Platform, &event.Proven,
	}, action)
}

// identified is what an event and a verdict say of an action.
type identified struct {
	origin, tag, accountID, action *string
	ip, platform                   string
	proven                         *bool
}

// difference is what of an event or a verdict is of another action than this one.
func difference(seen identified, action Action) (Problem, error) {
	if text(seen.origin) != action.Origin {
		return OtherOrigin, nil
	}
	if action.IP != AnyIP {
		isSame, err := sameAddress(seen.ip, action.IP)
		if err != nil {
			return None, err
		}
		if !isSame {
			return OtherAddress, nil
		}
	}
	switch {
	case text(seen.tag) != action.Tag:
		return OtherTag, nil
	case action.AccountID != nil && (seen.accountID == nil || *seen.accountID != *action.AccountID):
		return OtherAccount, nil
	case action.Action != "" && text(seen.action) != action.Action:
		return OtherAction, nil
	case action.Platform != "" && seen.platform != action.Platform:
		return OtherPlatform, nil
	case action.Proven && (seen.proven == nil || !*seen.proven):
		return Unproven, nil
	}
	return None, nil
}

func text(value *string) string {
	if value == nil {
		return ""
	}
	return *value
}

// sameAddress compares addresses in any notation; IPv4 inside IPv6 is IPv4.
func sameAddress(one, other string) (bool, error) {
	first, err := netip.ParseAddr(one)
	if err != nil {
		return false, fmt.Errorf("svc: %q is no address", one)
	}
	second, err := netip.ParseAddr(other)
	if err != nil {
		return false, fmt.Errorf("svc: %q is no address", other)
	}
	return first.Unmap().WithZone("") == second.Unmap().WithZone(""), nil
}
