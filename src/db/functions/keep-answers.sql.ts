/**
 * Keeps answers of ended calls under the keys of their callers, for whoever still holds those; the output of such an end
 * is the answer. An answer that is told twice is kept once. It locks the keys, in their order (L3).
 */
export const keepAnswers = `
create function keep_answers(p_ends attempt_end[], p_outputs json[]) returns void language sql as $$
  with held as (
    select i.project_id, i.request, i.key, (e.keeps ->> 'status')::int as status, o.output
    from unnest(p_ends) with ordinality e
    join unnest(p_outputs) with ordinality o (output, ordinality) using (ordinality)
    join idempotency i on i.project_id = e.keeps ->> 'project_id' and i.request = e.keeps ->> 'request'
      and i.key = e.keeps ->> 'key' and i.status = 0 and i.answer #>> '{}' = e.keeps ->> 'holder'
    where e.keeps is not null order by i.project_id, i.request, i.key for update of i
  )
  update idempotency i set status = h.status, answer = h.output, created_at = clock_timestamp()
  from held h where i.project_id = h.project_id and i.request = h.request and i.key = h.key
$$;
`;
