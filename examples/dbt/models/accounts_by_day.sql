-- Each account on each day (UTC) on which it was seen.
select
    account_id,
    cast(occurred_at as date) as day,
    count(*) as events,
    count(distinct visitor_id) as visitors,
    sum(case when suspect_level in ('medium', 'high') then 1 else 0 end) as suspicious_events,
    sum(case when decision in ('block', 'challenge') then 1 else 0 end) as stopped_events
from {{ ref("events") }}
where account_id is not null
group by account_id, cast(occurred_at as date)
