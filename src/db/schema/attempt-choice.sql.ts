/**
 * Why an attempt's instance was chosen, and what the choice was made from. It is written once, beside the attempt, which
 * is written again as it ends; it is read as a whole and never searched, so it is kept as text. It is kept for a shorter
 * time than its attempt, in parts by week (db/parts/table-parts.ts).
 */
export const attemptChoiceTable = `
create table attempt_choice (
  attempt_id text primary key,
  decision json not null,
  inputs json -- to make the choice again; null: nothing was chosen
) partition by range (attempt_id);
create table attempt_choice_default partition of attempt_choice default;
`;
