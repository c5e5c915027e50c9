create table keys (digest bytea primary key, organization bigint not null);
create table visitors (organization bigint, token text, id uuid not null, primary key (organization, token));
create table idempotency (organization bigint, key text, request uuid not null, primary key (organization, key));
create table ledger (organization bigint, request uuid, micros bigint not null, primary key (organization, request));
create table events (
    organization bigint, request uuid, at timestamptz not null default now(), visitor uuid not null,
    address inet not null, user_agent text not null, report jsonb not null, primary key (organization, request)
);
create index on events (organization, at);
create index on events (organization, visitor);
