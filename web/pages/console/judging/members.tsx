/** Members: who signs in to the console, and what each may do. */
/** @jsxImportSource preact */
import { useState } from "preact/hooks";
import { changed, useAction, useAdmin, useConsole, useLoad } from "../state.js";
import { AdminNote, Button, Choice, type Column, Confirm, Copy, Dialog, Field, Problem, Show, Table, Time } from "../ui.js";
import type { Member, Role } from "../wire.js";

const ROLES: [Role, string][] = [
  ["admin", "admin: everything"],
  ["developer", "developer: keys, webhooks and lists"],
  ["analyst", "analyst: labels, reviews, notes and entries of lists"],
  ["viewer", "viewer: reads, and changes nothing"],
];
type Open = { is: "invite" } | { is: "link"; url: string; member: Member; until: string } | { is: "role" | "remove"; member: Member };
interface Invited {
  member: Member;
  invitation_url: string;
  expires_at: string;
}

export function Members() {
  return useAdmin() ? <All /> : <AdminNote what="Seeing and inviting members" />;
}

function All() {
  const { api, session, notify } = useConsole();
  const [open, setOpen] = useState<Open>();
  const members = useLoad(async () => (await api.manage<{ members: Member[] }>("GET", "members")).members.sort((one, other) => one.name.localeCompare(other.name)), []);
  const done = (next?: Open) => {
    setOpen(next);
    members.reload();
  };
  const act = useAction((what: () => Promise<void>) => what());
  const invite = (member: Member) => act.run(async () => done(linked(await api.manage<Invited>("POST", `members/${member.id}/invitation`))));
  const suspend = (member: Member, status: Member["status"]) => act.run(async () => {
    await api.manage("PATCH", `members/${member.id}`, { status });
    notify(status === "active" ? "May sign in again." : "Suspended: signed out everywhere.");
    members.reload();
  });
  const linked = ({ member, invitation_url: url, expires_at: until }: Invited): Open => ({ is: "link", member, url, until });
  const columns: Column<Member>[] = [
    { head: "Name", cell: (member) => <><strong>{member.name}</strong><br /><span class="quiet">{member.email}</span></> },
    { head: "Role", cell: (member) => member.role },
    { head: "Status", cell: (member) => <>{member.status === "active" ? "active" : <span class={`badge ${member.status === "suspended" ? "high" : "medium"}`}>{member.status}</span>}{member.status === "active" && !member.has_totp && member.has_password && <span class="quiet"> without one-time code</span>}</> },
    { head: "Signed in", cell: (member) => <Time at={member.last_signed_in_at} /> },
    {
      head: "Actions",
      cell: (member) => (
        <div class="buttons">
          <Button admin kind="small" name={`Change the role of ${member.name}`} onClick={() => setOpen({ is: "role", member })}>Role</Button>
          {member.status !== "suspended" && <Button admin kind="small" busy={act.busy} name={`New link for ${member.name}`} onClick={() => invite(member)}>New link</Button>}
          {member.status !== "invited" && <Button admin kind="small" busy={act.busy} name={`${member.status === "suspended" ? "Let in" : "Suspend"} ${member.name}`} onClick={() => suspend(member, member.status === "suspended" ? "active" : "suspended")}>{member.status === "suspended" ? "Let in" : "Suspend"}</Button>}
          <Button admin kind="small danger" name={`Remove ${member.name}`} onClick={() => setOpen({ is: "remove", member })}>Remove</Button>
        </div>
      ),
    },
  ];
  return (
    <>
      <p class="buttons lone"><Button admin kind="primary" onClick={() => setOpen({ is: "invite" })}>Invite a member</Button></p>
      <Problem error={act.error} />
      <Show of={members}>{(rows) => <Table name="Members" columns={columns} rows={rows} keyOf={(member) => member.id} rowClass={(member) => (member.id === session.member?.id ? "own" : "")} empty={<p>No member yet. Invite the first one.</p>} />}</Show>
      {open?.is === "invite" && (
        <Dialog title="Invite a member" submit="Invite" onClose={() => done()} onSubmit={async (form) => {
          done(linked(await api.manage<Invited>("POST", "members", { email: String(form.get("email")).trim(), name: String(form.get("name")).trim(), role: form.get("role") })));
        }}>
          <Field label="E-mail address" hint="No e-mail is sent: you pass on the link yourself."><input name="email" type="email" required maxLength={254} autocomplete="off" /></Field>
          <Field label="Name"><input name="name" required maxLength={100} autocomplete="off" /></Field>
          <Field label="Role"><Choice name="role" value="analyst" options={ROLES} /></Field>
        </Dialog>
      )}
      {open?.is === "link" && (
        <Dialog title={`The link for ${open.member.name}`} submit="I have it" onClose={() => done()}>
          <p>Send it over a channel that you trust. It works once, until <Time at={open.until} />, and is not shown again.{open.member.status === "active" && " With it this member chooses a new password and sets up one-time codes again; until then the present ones stay valid."}</p>
          <p class="secret"><code>{open.url}</code> <Copy text={open.url} what="the link" /></p>
        </Dialog>
      )}
      {open?.is === "role" && (
        <Dialog title={`Role of ${open.member.name}`} submit="Save" onClose={() => done()} onSubmit={async (form) => {
          await api.manage("PATCH", `members/${open.member.id}`, changed({ role: form.get("role") }, open.member));
          notify("The role is changed.");
          done();
        }}>
          <Field label="Role"><Choice name="role" value={open.member.role} options={ROLES} /></Field>
        </Dialog>
      )}
      {open?.is === "remove" && (
        <Confirm title={`Remove ${open.member.name}?`} submit="Remove" onClose={() => done()} onConfirm={async () => {
          await api.manage("DELETE", `members/${open.member.id}`);
          notify("Removed, and signed out everywhere.");
          done();
        }}>
          {open.member.has_provider
            ? <p><strong>The OpenID provider still knows this person.</strong> While it maps a role, the next sign-in makes a new member. Remove the role there first, or suspend the member here.</p>
            : <p><bdi>{open.member.email}</bdi> can no longer sign in.</p>}
          <p>Entries of this member in the audit log stay.</p>
        </Confirm>
      )}
    </>
  );
}
