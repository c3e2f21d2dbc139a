# owner.mk - root runs make in a tree of another user: build/ is given to that user when make ends
GOALS = $(or $(MAKECMDGOALS),all)

.PHONY: $(GOALS) as-owned
$(GOALS): as-owned
	@:

as-owned:
	+@mk/owner.sh $(MAKE) --no-print-directory $(GOALS)
