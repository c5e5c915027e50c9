package svc

import (
	"fmt"
	"net/netip"
	"reflect"
	"regexp"
	"strings"
	"time"
)

// Problem says why an identification does not belong to an action. OtherAddress, OtherNetwork and Unproven are weak: honest
// visitors have them, too, and they ask for a second factor. Others may be added.
type Problem string

// What a Problem is now. None, the empty one, says that the identification belongs to the action.
const (
	None          Problem = ""
	NotFound      Problem = "not_found"
	Invalid       Problem = "invalid"
	TooOld        Problem = "too_old"
	OtherOrigin   Problem = "other_origin"
	OtherAddress  Problem = "other_address"
	OtherNetwork  Problem = "other_network"
	OtherTag      Problem = "other_tag"
	OtherAccount  Problem = "other_account"
	OtherAction   Problem = "other_action"
	OtherPlatform Problem = "other_platform"
	Unproven      Problem = "unproven"
	UsedBefore    Problem = "used_before"
)

// Decision says what to do about an action.
type Decision string

// What a Decision is. Verify asks for a second factor.
const (
	Accept Decision = "accept"
	Verify Decision = "verify"
	Refuse Decision = "refuse"
)

// AnyIP as Action.IP does not compare the address, as an empty one.
const AnyIP = "any"

const (
	maxAge          = 5 * time.Minute
	clockSkew       = 30 * time.Second
	knownConfidence = 90
	// networkBits4 and networkBits6 are compared of an address where its network is enough: what a provider gives one site.
	networkBits4, networkBits6 = 24, 48
)

// timeForm is RFC 3339.
var timeForm = regexp.MustCompile(`^[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3])(:[0-5][0-9]){2}(\.[0-9]{1,9})?` +
	`(Z|[+-](0[0-9]|1[0-4]):[0-5][0-9])$`)

// Action is what is being served.
type Action struct {
	// Origin of the page; empty for an app.
	Origin string
	// IP is the address that is talking to you, without its port, to compare it: OtherAddress asks for a second factor, and
	// honest visitors have it who reach the service by IPv6 and you by IPv4. Empty does not compare it.
	IP string
	// SameNetwork says that it is enough that IP is of the same network, of IPv4 the /24 and of IPv6 the /48: OtherNetwork
	// takes the place of OtherAddress.
	SameNetwork bool
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
	// Proven asks for a visit that its browser proved: Unproven asks for a second factor. A first visit is never proven:
	// it brings the key that later ones are compared with.
	Proven bool
	// AllowUnknown accepts a visitor that is new (confidence 0), or the same by all that is known and not proven (85 to
	// 89), as after its storage was cleared. For a sign-up: no not_known.
	AllowUnknown bool
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
	// Problem is None where it belongs to the action, and Event may be relied on. So it may, after a second factor, where
	// Decision is Verify.
	Problem Problem
	// Event as it was read, also beside a problem, for the log; nil where there is none.
	Event *EventDetailBody

	problems     []Problem
	allowUnknown bool
}

// Decision says what to do: the stricter of what the checks and the level say and of what a rule decided. It is Refuse where
// the identification is of another action.
func (c Checked) Decision() Decision { return strictest(c.against()) }

// Reasons says why it is not Accept, what decided first; empty if it is. Reasons are rule: and the name of the rule that blocked or
// challenged; level: and the level; a Problem; not_scored, not_identifiable, not_known. Others may follow.
func (c Checked) Reasons() []string { return reasons(c.against()) }

func (c Checked) against() []finding {
	var said *judged
	if c.Event != nil {
		said = judgedEvent(c.Event)
	}
	return against(allOf(c.Problem, c.problems), said, c.allowUnknown)
}

// Decide says what to do with an event that belongs to its action, as Checked.Decision does, at a log-in.
func Decide(event *EventDetailBody) Decision {
	return strictest(against(nil, judgedEvent(event), false))
}

// judged is what an event and a verdict say of a visitor.
type judged struct {
	level          *string
	isIdentifiable bool
	confidence     int64
	rule           *DecisionBody
}

func judgedEvent(event *EventDetailBody) *judged {
	return &judged{event.SuspectLevel, event.Identifiable, event.VisitorConfidence, event.Decision}
}

// finding is what speaks against accepting an event or a verdict.
type finding struct {
	decision Decision
	reason   string
}

func strictest(found []finding) Decision {
	if len(found) == 0 {
		return Accept
	}
	return found[0].decision
}

func reasons(found []finding) []string {
	named := make([]string, len(found))
	for i, one := range found {
		named[i] = one.reason
	}
	return named
}

// allOf has every problem, where a value was made by hand also.
func allOf(first Problem, problems []Problem) []Problem {
	if len(problems) == 0 && first != None {
		return []Problem{first}
	}
	return problems
}

func firstOf(problems []Problem) Problem {
	if len(problems) == 0 {
		return None
	}
	return problems[0]
}

// mayCount says whether an identification counts for its action, at once or after a second factor: then it is used.
func mayCount(problems []Problem) bool {
	for _, problem := range problems {
		if problem != OtherAddress && problem != OtherNetwork && problem != Unproven {
			return false
		}
	}
	return true
}

// against has the strictest first.
func against(problems []Problem, said *judged, allowUnknown bool) []finding {
	if said == nil && len(problems) == 0 {
		problems = []Problem{NotFound}
	}
	if said == nil || !mayCount(problems) {
		return []finding{{Refuse, string(problems[0])}}
	}
	var refusing, asking []finding
	add := func(isRefused bool, reason string) {
		if isRefused {
			refusing = append(refusing, finding{Refuse, reason})
		} else {
			asking = append(asking, finding{Verify, reason})
		}
	}
	if rule := said.rule; rule != nil && rule.Action != "allow" && rule.Action != "review" {
		add(rule.Action == "block", "rule:"+rule.Rule) // an action of tomorrow is no reason to accept
	}
	switch {
	case said.level == nil:
		add(false, "not_scored")
	case *said.level != "low":
		add(*said.level == "high", "level:"+*said.level)
	}
	for _, problem := range problems {
		add(false, string(problem))
	}
	if !said.isIdentifiable {
		add(false, "not_identifiable")
	}
	if !allowUnknown && said.confidence < knownConfidence {
		add(false, "not_known")
	}
	return append(refusing, asking...)
}

// problemsWith has the first strong problem alone, else every weak one; the first use is left out, which only a memory can
// tell. The error is an *APIError where what was read has not the form of an event, or is another one than requestID, or
// says that action.IP is no address.
func problemsWith(read fields, action Action, requestID string) (*EventDetailBody, []Problem, error) {
	if !hasForm(read, []string{"request_id", "occurred_at"}, nil) || read["request_id"] != requestID {
		return nil, nil, unexpected(200)
	}
	occurred, isTime := timeOf(read["occurred_at"].(string))
	if !isTime {
		return nil, nil, unexpected(200)
	}
	event := &EventDetailBody{}
	fill(reflect.ValueOf(event).Elem(), map[string]any(read))
	if age := action.now().Sub(occurred); age <= -clockSkew || age >= maxAge {
		return event, []Problem{TooOld}, nil
	}
	problems, err := differences(identified{
		event.Origin, event.Tag, event.AccountID, event.Action, event.IPAddress, event.Platform, &event.Proven,
	}, action)
	return event, problems, err
}

// timeOf reads a time of RFC 3339, to a millisecond.
func timeOf(text string) (time.Time, bool) {
	found, err := time.Parse(time.RFC3339Nano, text)
	return found.Truncate(time.Millisecond), err == nil && timeForm.MatchString(text)
}

// identified is what an event and a verdict say of an action.
type identified struct {
	origin, tag, accountID, action *string
	ip, platform                   string
	proven                         *bool
}

// differences is what of an event or a verdict is of another action than this one, as of problemsWith.
func differences(seen identified, action Action) ([]Problem, error) {
	weak, err := distance(seen.ip, action)
	if err != nil {
		return nil, err
	}
	switch {
	case text(seen.origin) != action.Origin:
		return []Problem{OtherOrigin}, nil
	case text(seen.tag) != action.Tag:
		return []Problem{OtherTag}, nil
	case action.AccountID != nil && (seen.accountID == nil || *seen.accountID != *action.AccountID):
		return []Problem{OtherAccount}, nil
	case action.Action != "" && text(seen.action) != action.Action:
		return []Problem{OtherAction}, nil
	case action.Platform != "" && seen.platform != action.Platform:
		return []Problem{OtherPlatform}, nil
	case action.Proven && (seen.proven == nil || !*seen.proven):
		weak = append(weak, Unproven)
	}
	return weak, nil
}

// hasForm says whether what the checks read of an event or a verdict is there and of its kind, and so are more fields.
func hasForm(read fields, texts, integers []string) bool {
	for _, name := range append([]string{"ip_address", "platform"}, texts...) {
		if _, isText := read.text(name); !isText {
			return false
		}
	}
	for _, name := range append([]string{"visitor_confidence"}, integers...) {
		if _, isInteger := read.integer(name); !isInteger {
			return false
		}
	}
	for _, name := range []string{"origin", "tag", "account_id", "action", "suspect_level"} {
		if _, isText := read.optional(name); !isText {
			return false
		}
	}
	if rule := read["decision"]; rule != nil {
		said, isRule := rule.(map[string]any)
		_, hasAction := said["action"].(string)
		_, hasName := said["rule"].(string)
		if !isRule || !hasAction || !hasName {
			return false
		}
	}
	_, isFlag := read["identifiable"].(bool)
	_, err := address(read["ip_address"].(string))
	return isFlag && err == nil
}

func text(value *string) string {
	if value == nil {
		return ""
	}
	return *value
}

// distance is what differs of the two addresses, where one is to be compared.
func distance(seen string, action Action) ([]Problem, error) {
	if action.IP == "" || action.IP == AnyIP {
		return nil, nil
	}
	one, err := address(seen)
	if err != nil {
		return nil, err
	}
	other, err := address(action.IP)
	if err != nil {
		return nil, err
	}
	bits := networkBits6
	if one.Is4() {
		bits = networkBits4
	}
	switch {
	case action.SameNetwork && !netip.PrefixFrom(one, bits).Contains(other):
		return []Problem{OtherNetwork}, nil
	case !action.SameNetwork && one != other:
		return []Problem{OtherAddress}, nil
	}
	return nil, nil
}

// address reads one in any notation; IPv4 inside IPv6 is IPv4, and a zone is of one machine.
func address(text string) (netip.Addr, error) {
	found, err := netip.ParseAddr(text)
	if err != nil || strings.Count(text, "%") > 1 {
		return found, fmt.Errorf("svc: %q is not an address", text)
	}
	return found.Unmap().WithZone(""), nil
}
