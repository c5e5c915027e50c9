select wanted.events, found.events
from (select count(*) as events from {{ ref("events") }} where visitor_id is not null) as wanted
cross join (select coalesce(sum(events), 0) as events from {{ ref("visitors") }}) as found
where wanted.events <> found.events
