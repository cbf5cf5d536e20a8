import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { type FormEvent, type ReactElement, useEffect, useRef, useState } from 'react';
import { AnswerError } from '../../api/problem-error.ts';
import { type BrowserProof, offerQuery, signIn } from '../../api/session.ts';
import { Button, fieldClass } from '../../shared/parts.tsx';
import { ProblemView } from '../../shared/problem-view.tsx';
import {
  explainRefusal,
  findReplacement,
  isBackFromProvider,
  readCode,
  readNext,
  type SessionReplacement,
} from './model.ts';

interface AskedFirst extends SessionReplacement {
  readonly code: string;
}

/** Takes attempts one at a time: their result, and whether a link waits for an answer. */
function useAttempts() {
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const [asked, setAsked] = useState<AskedFirst | null>(null);
  const enter = useEnter();

  const refuse = (proof: BrowserProof, refusal: unknown): void => {
    const isOfLink = 'code' in proof && refusal instanceof AnswerError;
    const replacement = isOfLink ? findReplacement(refusal.status, refusal.problem) : null;
    if (isOfLink && replacement !== null) setAsked({ ...replacement, code: proof.code });
    else setError(refusal);
  };
  const tryProof = async (proof: BrowserProof): Promise<void> => {
    setBusy(true);
    setError(null);
    setAsked(null);
    await signIn(proof).then(enter, (refusal: unknown) => refuse(proof, refusal));
    setBusy(false);
  };
  return { error, isBusy, asked, enter, tryProof };
}

/** With the provider; by the code of a link, which is after `#` and so in no log; or by a key, which is not stored. */
export function LoginPage(): ReactElement {
  const { error, isBusy, asked, enter, tryProof } = useAttempts();
  const tried = useRef(false);
  const refusal = explainRefusal(location.search);

  // biome-ignore lint/correctness/useExhaustiveDependencies: a code works once, so it is tried once
  useEffect(() => {
    if (isBackFromProvider(location.search) && !tried.current) {
      tried.current = true;
      void enter();
      return;
    }
    const tryLink = (): void => {
      const code = readCode(location.hash);
      if (code === null) return;
      tried.current = true;
      const wanted = new URLSearchParams(location.search).get('next');
      if (wanted !== null) sessionStorage.setItem('capstan.next', wanted);
      history.replaceState(null, '', location.pathname);
      void tryProof({ code });
    };
    if (!tried.current) tryLink();
    // A link that is pasted into this page changes its fragment alone, which loads nothing.
    addEventListener('hashchange', tryLink);
    return () => removeEventListener('hashchange', tryLink);
  }, []);

  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const key = String(new FormData(event.currentTarget).get('key') ?? '').trim();
    if (key !== '') void tryProof({ key });
  };

  if (asked !== null) {
    const replace = (): void => void tryProof({ code: asked.code, replace: true });
    return <AskFirst {...asked} onReplace={replace} onStay={() => void enter()} />;
  }
  return (
    <main className="mx-auto flex min-h-dvh max-w-sm flex-col justify-center gap-5 px-5 py-10">
      <div>
        <img src="/ui/icon.svg" alt="" width="40" height="40" />
        <h1 className="mt-4">Sign in to Capstan</h1>
        <p className="mt-1 text-sm text-muted">
          <code className="font-mono">capstan login</code>, where Capstan runs, prints a link that signs you
          in.
        </p>
      </div>
      {refusal === null ? null : <Refusal words={refusal} />}
      {error === null ? null : <ProblemView error={error} />}
      <ProviderButton />
      <form onSubmit={submit} className="flex flex-col gap-2">
        <label htmlFor="key" className="text-sm font-medium">
          Or paste an API key
        </label>
        <input
          id="key"
          name="key"
          type="password"
          autoComplete="off"
          spellCheck={false}
          className={`${fieldClass} h-9 font-mono`}
        />
        <Button type="submit" look="primary" disabled={isBusy} className="h-9">
          {isBusy ? 'Signing in …' : 'Sign in'}
        </Button>
        <p className="text-xs text-muted">
          An administrator creates your key in Settings, Keys, or with{' '}
          <code className="font-mono">capstan keys create</code>. The page does not keep it: the browser gets
          a cookie that ends after 12 hours.
        </p>
      </form>
    </main>
  );
}

interface AskFirstProps extends SessionReplacement {
  readonly onReplace: () => void;
  readonly onStay: () => void;
}

/** A link of another person would make the user work under that person's name without noticing. */
function AskFirst({ present, link, onReplace, onStay }: AskFirstProps): ReactElement {
  return (
    <main className="mx-auto flex min-h-dvh max-w-sm flex-col justify-center gap-5 px-5 py-10">
      <h1>Switch to another key?</h1>
      <p>
        You are signed in as <strong>{present}</strong>. This link signs you in as <strong>{link}</strong>.
        What you do then is done with that key, in its projects. If you did not make the link yourself, stay.
      </p>
      <Button look="primary" onClick={onStay}>
        Stay {present}
      </Button>
      <Button onClick={onReplace}>Sign in as {link}</Button>
    </main>
  );
}

function Refusal({ words }: { readonly words: string }): ReactElement {
  return (
    <p role="alert" className="rounded-lg border border-line bg-failed-soft px-4 py-3 text-sm">
      {words}
    </p>
  );
}

/** Shown only if there is a provider. */
function ProviderButton(): ReactElement | null {
  const { data } = useQuery(offerQuery);
  if (data?.oidc === undefined || data.oidc === null) return null;
  return (
    <a
      href={data.oidc.url}
      className="flex h-9 items-center justify-center rounded-md bg-accent px-3 text-sm font-medium text-on-accent"
    >
      Sign in with {data.oidc.name}
    </a>
  );
}

function useEnter(): () => Promise<void> {
  const queries = useQueryClient();
  const navigate = useNavigate();
  return async () => {
    queries.clear();
    const next = readNext(sessionStorage.getItem('capstan.next'));
    sessionStorage.removeItem('capstan.next');
    await navigate({ href: next, replace: true });
  };
}
