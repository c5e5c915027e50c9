-- Each event as it is now, once; none that was erased.
{%- set columns = [
    "request_id", "occurred_at", "visitor_id", "account_id", "action", "tag", "suspect_score", "suspect_level", "decision",
    "ip_address", "country_code",
] %}
{%- if var("svc_source") == "sql" %}
select
    {% for column in columns %}events.{{ column }}, {% endfor %}events.label, events.label_reason
from {{ source("svc", "sql_events") }} as events
join {{ source("svc", "sql_organizations") }} as organizations using (organization)
where organizations.name = '{{ var("organization") }}' and events.environment = '{{ var("environment") }}'
{%- elif var("svc_source") == "clickhouse" %}
select
    {% for column in columns %}{{ "cast(null as Nullable(String)) as decision" if column == "decision" else column }}, {% endfor %}label, label_reason
from {{ source("sinks", "svc_events") }} final
where not erased and error is null
{%- else %}
-- Files are in the order of their names, and rows in theirs. A row has the event as it was when its file was written, or
-- without its time if it was erased by then, is unreadable, or is too old to be read: then its label alone is new.
with changes as (
    select *, row_number() over (partition by request_id order by filename, file_row_number) as number
    from {{ source("svc", "changes") }}
),

whole as (
    select *, row_number() over (partition by request_id order by number desc) as newest
    from changes where occurred_at is not null
),

labels as (
    select request_id, label, label_reason, row_number() over (partition by request_id order by number desc) as newest
    from changes where error is null
)

select
    {% for column in columns %}whole.{{ column }}, {% endfor %}labels.label, labels.label_reason
from whole
join labels using (request_id)
where
    whole.newest = 1 and labels.newest = 1
    and request_id not in (select request_id from changes where type = 'event.erased')
{%- endif %}
