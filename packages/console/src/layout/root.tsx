import { useQuery } from '@tanstack/react-query';
import { Outlet, useLocation, useNavigate } from '@tanstack/react-router';
import { type ReactElement, useEffect } from 'react';
import { isStatus } from '../api/problem-error.ts';
import { keepProjectOf } from '../api/project.ts';
import { sessionQuery } from '../api/session.ts';
import { ProblemView } from '../shared/problem-view.tsx';
import { Frame } from './frame.tsx';

/** The login page for everyone, the rest after signing in. */
export function Root(): ReactElement {
  const { pathname } = useLocation();
  return pathname === '/login' ? <Outlet /> : <SignedIn />;
}

function SignedIn(): ReactElement {
  const session = useQuery({ ...sessionQuery, refetchInterval: 60_000 });
  const navigate = useNavigate();
  const { href } = useLocation();
  const isRefused = isStatus(session.error, 401);
  useEffect(() => {
    if (!isRefused) return;
    sessionStorage.setItem('capstan.next', href);
    void navigate({ to: '/login', replace: true });
  }, [isRefused, navigate, href]);
  if (isRefused) return <p className="p-6 text-sm text-muted">You are signed out.</p>;
  if (session.data !== undefined) {
    keepProjectOf(session.data.projects);
    return <Frame session={session.data} />;
  }
  if (session.error === null) return <p className="p-6 text-sm text-muted">Signing in …</p>;
  return (
    <div className="mx-auto max-w-2xl p-6">
      <ProblemView error={session.error} onRetry={() => void session.refetch()} />
    </div>
  );
}
