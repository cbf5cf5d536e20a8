/**
 * Moves money that nobody has to have room for. It locks the budgets, whose scopes come in their order (L4).
 */
export const moveBudgets = `
create function move_budgets(p_scopes text[], p_windows date[], p_reserved bigint[], p_spent bigint[])
returns void language plpgsql as $$
begin
  perform apply_budgets(p_scopes, p_windows, p_reserved, p_spent, array_fill(0::bigint, array[cardinality(p_scopes)]),
    false);
end $$;
`;
