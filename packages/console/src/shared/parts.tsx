/** The small parts of every page. */
import type { ButtonHTMLAttributes, ReactElement, ReactNode } from 'react';
import { Icon } from './icon.tsx';
import type { IconName } from './icon-names.ts';
import { useTitle } from './title.ts';

const buttonLooks = {
  plain: 'border border-line bg-surface text-text hover:border-line-strong hover:bg-sunken',
  primary: 'border border-accent bg-accent text-on-accent hover:opacity-90',
  danger: 'border border-line bg-surface text-failed hover:border-failed hover:bg-failed-soft',
  bare: 'border border-transparent text-muted hover:bg-sunken hover:text-text',
} as const;

export interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  readonly look?: keyof typeof buttonLooks;
  readonly icon?: IconName;
}

/** For a link that looks like a button. */
export function buttonClass(look: keyof typeof buttonLooks): string {
  return `inline-flex h-8 items-center justify-center gap-1.5 whitespace-nowrap rounded-md px-3 text-sm font-medium transition-colors disabled:cursor-default disabled:opacity-50 ${buttonLooks[look]}`;
}

export function Button({
  look = 'plain',
  icon,
  className = '',
  children,
  ...rest
}: ButtonProps): ReactElement {
  return (
    <button type="button" className={`${buttonClass(look)} ${className}`} {...rest}>
      {icon === undefined ? null : <Icon name={icon} size={15} />}
      {children}
    </button>
  );
}

export interface PanelProps {
  readonly title?: ReactNode;
  readonly actions?: ReactNode;
  readonly isTight?: boolean;
  readonly className?: string;
  readonly children: ReactNode;
}

export function Panel({
  title,
  actions,
  isTight = false,
  className = '',
  children,
}: PanelProps): ReactElement {
  return (
    <section className={`min-w-0 rounded-lg border border-line bg-surface ${className}`}>
      {title === undefined ? null : (
        <header className="flex min-h-11 flex-wrap items-center justify-between gap-2 border-b border-line px-4 py-1.5">
          <h2>{title}</h2>
          {actions}
        </header>
      )}
      <div className={isTight ? '' : 'p-4'}>{children}</div>
    </section>
  );
}

export interface PageHeadProps {
  readonly title: ReactNode;
  readonly about?: ReactNode;
  readonly actions?: ReactNode;
}

export function PageHead({ title, about, actions }: PageHeadProps): ReactElement {
  useTitle(typeof title === 'string' ? title : '');
  return (
    <div className="mb-5 flex flex-wrap items-start justify-between gap-3">
      <div className="min-w-0">
        <h1>{title}</h1>
        {about === undefined ? null : <p className="mt-1 max-w-prose text-sm text-muted">{about}</p>}
      </div>
      {actions === undefined ? null : <div className="flex flex-wrap items-center gap-2">{actions}</div>}
    </div>
  );
}

/** An empty list: its future content, and the first step. */
export function EmptyState({ title, children, command }: EmptyStateProps): ReactElement {
  return (
    <div className="mx-auto max-w-lg px-4 py-10 text-center">
      <h2>{title}</h2>
      <div className="mt-1.5 text-sm text-muted">{children}</div>
      {command === undefined ? null : (
        <pre className="mt-4 inline-block max-w-full whitespace-pre-wrap break-words rounded-md border border-line bg-sunken px-4 py-2.5 text-left font-mono text-sm">
          {command}
        </pre>
      )}
    </div>
  );
}

export interface EmptyStateProps {
  readonly title: string;
  readonly children: ReactNode;
  readonly command?: string;
}

export interface FactsProps {
  readonly facts: readonly (readonly [string, ReactNode])[];
}

/** A list of names and values; null values are omitted. */
export function Facts({ facts }: FactsProps): ReactElement {
  return (
    <dl className="grid grid-cols-[minmax(6.5rem,max-content)_1fr] gap-x-5 gap-y-1.5 text-sm">
      {facts
        .filter(([, value]) => value !== null && value !== undefined)
        .map(([name, value]) => (
          <div key={name} className="contents">
            <dt className="text-muted">{name}</dt>
            <dd className="figure min-w-0 break-words">{value}</dd>
          </div>
        ))}
    </dl>
  );
}

export const fieldClass =
  'h-8 rounded-md border border-line-strong bg-surface px-2.5 text-sm text-text placeholder:text-faint hover:border-muted';
export const areaClass =
  'w-full rounded-md border border-line-strong bg-surface px-2.5 py-2 font-mono text-sm text-text placeholder:text-faint hover:border-muted';
export const tableClass =
  'w-full border-collapse text-sm [&_td]:border-t [&_td]:border-line [&_td]:px-3 [&_td]:py-2 [&_th]:px-3 [&_th]:py-2 [&_th]:text-left [&_th]:text-xs [&_th]:font-medium [&_th]:text-muted [&_tr>:first-child]:pl-4 [&_tr>:last-child]:pr-4 max-sm:[&_td.figure]:whitespace-nowrap max-sm:[&_td]:px-1.5 max-sm:[&_td]:wrap-anywhere max-sm:[&_th]:px-1.5';
export const linkClass = 'text-accent underline-offset-2 hover:underline';

/** A placeholder during loading, of about the final height. */
export function Skeleton(): ReactElement {
  return (
    <div
      role="status"
      aria-label="Loading"
      className="flex h-48 flex-col gap-3 p-4 motion-safe:animate-pulse"
    >
      <div className="h-4 w-2/5 rounded bg-quiet-soft" />
      <div className="h-4 w-4/5 rounded bg-quiet-soft" />
      <div className="h-4 w-3/5 rounded bg-quiet-soft" />
    </div>
  );
}
