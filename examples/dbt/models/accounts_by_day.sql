-- Each account on each day (UTC, whatever the time zone of the session) on which it was seen.
{%- set day = "toDate(occurred_at, 'UTC')" if var("svc_source") == "clickhouse" else "cast(occurred_at at time zone 'UTC' as date)" %}
select
    account_id,
    {{ day }} as day,
    count(*) as events,
    count(distinct visitor_id) as visitors,
    sum(case when suspect_level in ('medium', 'high') then 1 else 0 end) as suspicious_events,
    sum(case when decision in ('block', 'challenge') then 1 else 0 end) as stopped_events
from {{ ref("events") }}
where account_id is not null
group by account_id, {{ day }}
