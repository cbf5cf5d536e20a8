import { useQuery } from '@tanstack/react-query';
import { useEffect } from 'react';
import { openReviewsQuery } from '../api/reviews.ts';
import { usePolling } from '../live/live.tsx';

/** How many decisions wait for a person, in the title of the tab as well. */
export function useReviewCount(): number {
  const count = useQuery({ ...openReviewsQuery(), refetchInterval: usePolling() }).data?.length ?? 0;
  useEffect(() => {
    document.title = titleOf(count);
  }, [count]);
  return count;
}

function titleOf(count: number): string {
  return count === 0 ? 'Capstan' : `(${count}) Capstan`;
}
