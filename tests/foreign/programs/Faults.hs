-- SPDX-License-Identifier: Apache-2.0
-- Light threads, which a timer's signal switches; an exception of the processor; children, one by fork.
import Control.Concurrent
import Control.Exception
import Control.Monad
import System.Exit
import System.IO
import System.Posix.Process
import System.Process

main :: IO ()
main = do
  hSetBuffering stdout LineBuffering
  done <- newEmptyMVar
  forM_ [1 .. 50] $ \i -> forkIO (putMVar done $! sum [1 .. i * 1000 :: Int])
  replicateM 50 (takeMVar done) >>= print . sum
  (try (evaluate (1 `div` (0 :: Int))) :: IO (Either ArithException Int)) >>= print
  system "exit 3" >>= print
  child <- forkProcess (exitWith (ExitFailure 4))
  getProcessStatus True False child >>= print
  exitWith (ExitFailure 6)
