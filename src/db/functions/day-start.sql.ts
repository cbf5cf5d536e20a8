/**
 * Gives the first instant of a local day: where clocks go back over midnight, midnight comes twice. It takes no lock.
 */
export const dayStart = `
create function day_start(p_day date, p_zone text) returns timestamptz language sql stable as $$
  select m.midnight - case when ((m.midnight - interval '1 hour') at time zone p_zone)::date = p_day
    then interval '1 hour' else interval '0' end
  from (select p_day::timestamp at time zone p_zone) m (midnight)
$$;
`;
