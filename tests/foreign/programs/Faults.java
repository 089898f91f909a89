// SPDX-License-Identifier: Apache-2.0
// Null pointers and overflowing stacks, which the JVM learns of by SIGSEGV; threads, children, a hook of its end.
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

public class Faults {
    static int depth = 0;

    static void descend() {
        ++depth;
        descend();
    }

    static int nulls() {
        int caught = 0;
        for (int i = 0; i < 200000; ++i) {
            try {
                String text = i % 2 == 0 ? null : "x";
                caught += text.length() - 1;
            } catch (NullPointerException e) {
                ++caught;
            }
        }
        return caught;
    }

    static int threads() throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(32);
        List<Future<Integer>> all = new ArrayList<>();
        for (int i = 0; i < 200; ++i) {
            final int value = i;
            all.add(pool.submit(() -> {
                byte[][] kept = new byte[50][];
                for (int j = 0; j < kept.length; ++j) kept[j] = new byte[100000];
                return value;
            }));
        }
        int sum = 0;
        for (Future<Integer> each : all) sum += each.get();
        pool.shutdown();
        return sum;
    }

    static void children() throws Exception {
        for (int i = 0; i < 5; ++i) {
            Process child = new ProcessBuilder("sh", "-c", "echo child; exit " + i).start();
            System.out.print(new String(child.getInputStream().readAllBytes()));
            System.out.println(child.waitFor());
        }
    }

    public static void main(String[] arguments) throws Exception {
        Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("hook")));
        if (arguments.length > 0) {
            System.out.println("waiting");
            Thread.sleep(60000);
        }
        try {
            descend();
        } catch (StackOverflowError e) {
            System.out.println("overflow " + (depth > 100));
        }
        System.out.println(nulls());
        System.out.println(threads());
        children();
        System.gc();
        System.exit(3);
    }
}
