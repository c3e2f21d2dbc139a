# shares.rb - functions with known shares of the CPU time, by the thread's own clock: SECONDS, lines to $TRUTH
require "zlib"

TRUTH = Hash.new(0.0)
TEXT = (0...60_000).map { |i| (i * 7919 % 251).chr }.join

def clock
  Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
end

def p_loop
  i = t = 0
  while i < 60_000
    t += i * i % 7
    i += 1
  end
end

def p_recursion(n)
  return n if n < 2
  p_recursion(n - 1) + p_recursion(n - 2)
end

def p_depth(n)
  return p_depth(n - 1) + 1 if n > 0
  i = 0
  i += 1 while i < 60_000
  i
end

class Shape
  def p_method(n)
    s = 0
    n.times { |k| s += k & 3 }
    s
  end
end

def p_closure
  (1..20_000).map { |x| x * 3 }.select(&:even?).sum
end

def p_exception
  3000.times do
    raise ArgumentError, "x"
  rescue ArgumentError
  end
end

def p_fiber
  f = Fiber.new { loop { Fiber.yield 1 } }
  5000.times { f.resume }
end

def p_extension
  Zlib::Deflate.deflate(TEXT, 6)
end

def part(name)
  before = clock
  yield
  TRUTH[name] += clock - before
end

stop = Process.clock_gettime(Process::CLOCK_MONOTONIC) + ARGV[0].to_f
while Process.clock_gettime(Process::CLOCK_MONOTONIC) < stop
  part("p_loop") { p_loop }
  part("p_recursion") { p_recursion(20) }
  part("p_depth") { p_depth(60) }
  part("p_method") { Shape.new.p_method(30_000) }
  part("p_closure") { p_closure }
  part("p_exception") { p_exception }
  part("p_fiber") { p_fiber }
  part("p_extension") { p_extension }
end
File.write(ENV["TRUTH"], TRUTH.map { |name, seconds| "#{name} #{seconds}\n" }.join, mode: "a")
