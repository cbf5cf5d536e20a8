/** A skill as the rules see it: the specification's fields, and what Capstan knows besides. */
export interface KnownPattern {
  readonly job_type: string;
  /** All of them must be present. */
  readonly repo_signals: readonly string[];
  /** Regular expressions, of which one must match the last error; none: any error. */
  readonly error_patterns?: readonly string[] | undefined;
}

export interface SkillCounts {
  readonly success_count: number;
  readonly failure_count: number;
}

export interface KnownSkill extends SkillCounts {
  readonly id: string;
  readonly pattern: KnownPattern;
  readonly instructions: string;
  readonly template?: string | undefined;
  readonly source: string;
  /** The specification's ratio, 0 to 1. */
  readonly confidence: number;
  /** Unix time in seconds. */
  readonly last_used: number;
  readonly created_at: number;
  readonly state: 'active' | 'retired';
  /** Waits for somebody to look at it. */
  readonly flagged: boolean;
  /** A candidate came from somebody who may not vouch for it. */
  readonly trust: 'trusted' | 'candidate';
  readonly version: number;
  /** Uses that counted as success or failure. */
  readonly uses: number;
}
