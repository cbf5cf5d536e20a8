/** A ladder that a request has started keeps the key that asked for it, for the budgets and costs of its calls. */
import type { Knex } from 'knex';
import { changeTables } from './gentle-steps.ts';

const unknown = '{"key_id": "", "scopes": [], "names": null, "token_rates": []}';

const columns = [
  'alter table escalation add column if not exists caller jsonb',
  `update escalation set caller = '${unknown}' where run_id is null and caller is null`,
  'alter table escalation drop constraint if exists escalation_caller_check',
  `alter table escalation add constraint escalation_caller_check
  check ((run_id is null) = (caller is not null)) not valid`,
  'alter table escalation validate constraint escalation_caller_check',
];

const eraseUser = `
create or replace function erase_user(p_project text, p_user text, p_pseudonym text) returns int language plpgsql as $$
declare
  v_ids text[];
  v_days text[] := array['day:' || p_user, 'month:' || p_user];
begin
  select array_agg(attempt_id) into v_ids from (
    select attempt_id from attempt where project_id = p_project and scopes @> array[p_user]
    order by attempt_id for update) a;
  update attempt set scopes = array_replace(scopes, p_user, p_pseudonym),
      budgets = array_replace(array_replace(budgets, 'day:' || p_user, 'day:' || p_pseudonym),
        'month:' || p_user, 'month:' || p_pseudonym)
    where attempt_id = any (v_ids);
  update escalation set caller = jsonb_set(caller, '{scopes}', (
      select jsonb_agg(case s when p_user then p_pseudonym else s end order by at)
      from jsonb_array_elements_text(caller -> 'scopes') with ordinality x (s, at)))
    where project_id = p_project and jsonb_exists(caller -> 'scopes', p_user);
  perform 1 from (
    select scope, window_start from budget where scope in ('budget:' || p_project || ':day:' || p_user,
      'budget:' || p_project || ':month:' || p_user) order by scope collate "C", window_start for update) b;
  update budget set scope = 'budget:' || p_project || ':' || split_part(scope, ':', 3) || ':' || p_pseudonym
    where scope in ('budget:' || p_project || ':day:' || p_user, 'budget:' || p_project || ':month:' || p_user);
  perform set_config('capstan.erases', 'ledger_entry', true);
  update ledger_entry set budgets = array_replace(array_replace(budgets, 'day:' || p_user, 'day:' || p_pseudonym),
      'month:' || p_user, 'month:' || p_pseudonym)
    where project_id = p_project and budgets && v_days;
  perform set_config('capstan.erases', 'audit', true);
  update audit set subject = p_pseudonym, data = case when jsonb_exists(data, 'scope')
      then jsonb_set(data, '{scope}', to_jsonb(p_pseudonym)) else data end
    where project_id = p_project and subject = p_user;
  perform set_config('capstan.erases', '', true);
  delete from webhook_delivery d using webhook w where w.webhook_id = d.webhook_id and w.project_id = p_project
    and d.event = 'budget.reached' and d.payload #>> '{data,scope}' = p_user;
  return coalesce(cardinality(v_ids), 0);
end $$;
`;

export const storeCallers = {
  name: '0016-store-callers',
  isPiecewise: true,
  up: (db: Knex): Promise<void> => changeTables(db, [...columns, eraseUser]),
};
