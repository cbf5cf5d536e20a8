/** Why Postgres refused a statement, by the code that it gives (its manual, appendix A). */
const states = {
  unique_violation: '23505',
  foreign_key_violation: '23503',
  lock_not_available: '55P03',
} as const;

export function hasSqlState(thrown: unknown, state: keyof typeof states): boolean {
  return thrown instanceof Error && 'code' in thrown && thrown.code === states[state];
}
