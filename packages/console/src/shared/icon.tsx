import { drawings } from 'virtual:lucide';
import type { ReactElement } from 'react';
import type { IconName } from './icon-names.ts';

/** Decorative: a word beside it has the same meaning. */
export function Icon({ name, size = 16, className = '' }: IconProps): ReactElement {
  return (
    <svg
      aria-hidden="true"
      viewBox="0 0 24 24"
      width={size}
      height={size}
      className={`shrink-0 ${className}`}
      // biome-ignore lint/security/noDangerouslySetInnerHtml: a drawing compiled in from lucide
      dangerouslySetInnerHTML={{ __html: drawings[name] ?? '' }}
    />
  );
}

export interface IconProps {
  readonly name: IconName;
  readonly size?: number;
  readonly className?: string;
}
