-- Each visitor: when it was seen, and what with.
select
    visitor_id,
    min(occurred_at) as first_seen_at,
    max(occurred_at) as last_seen_at,
    count(*) as events,
    count(distinct account_id) as accounts,
    count(distinct country_code) as countries,
    max(suspect_score) as highest_suspect_score,
    sum(case when label = 'fraud' then 1 else 0 end) as fraud_events
from {{ ref("events") }}
where visitor_id is not null
group by visitor_id
