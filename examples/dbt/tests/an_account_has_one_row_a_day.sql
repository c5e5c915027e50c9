select account_id, day
from {{ ref("accounts_by_day") }}
group by account_id, day
having count(*) > 1
